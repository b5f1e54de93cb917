"""The steps of check.py, most important first, with their needs and times.

An early end therefore loses the least important ones. The times add up to less than the total, so
each step has its own time even if the others need all of theirs. Later steps may use the time that
a step leaves, up to twice their own.
"""

import dataclasses

from correctness import (accuracy, cpu_losses, device_query, device_tests, gpu_losses, libraries,
                         refusal, sanitized, self_contained)
from faults import faults, other_device, repeats, stops, two_gpus
from feeding import fed, filling
from profiling import kernels, profile
from speed import more_speed, speed


@dataclasses.dataclass(frozen=True)
class Step:
    run: object
    seconds: float
    needs: tuple = ()

    @property
    def name(self):
        return self.run.__name__


ALL = (
    Step(device_query, 7),
    Step(libraries, 15, ("gpu",)),
    Step(self_contained, 8),
    Step(refusal, 10, ("no gpu",)),
    Step(cpu_losses, 20, ("no gpu",)),
    Step(gpu_losses, 40, ("gpu",)),
    Step(repeats, 10, ("gpu",)),
    Step(speed, 60, ("gpu",)),
    Step(device_tests, 70, ("gpu", "tests")),
    Step(more_speed, 70, ("gpu",)),
    Step(profile, 20, ("gpu",)),
    Step(kernels, 20, ("gpu", "ncu")),
    Step(sanitized, 25, ("gpu", "tests", "sanitizer")),
    Step(fed, 35, ("gpu",)),
    Step(accuracy, 30, ("gpu",)),
    Step(other_device, 10, ("gpu",)),
    Step(faults, 8, ("gpu",)),
    Step(stops, 5, ("gpu",)),
    Step(two_gpus, 15, ("gpu", "two gpus")),
    Step(filling, 20, ("gpu",)),
)
