#!/usr/bin/env python3
"""Measures what --run (metrics, TensorBoard's events, the log) costs LeNet.

    watching.py --trainer=build/release/trainer [--pairs=15] [--iterations=2000] [--net=lenet]

Trains the net on drawn digits with its own solver's display and tests, in pairs of a run with --run
and a run without it; each goes first in half of the pairs. Both write the log to a file. A pair's
ratio compares the seconds from the first iteration to the last in each run's log, so the start of
the program does not count. A second ratio compares the processor time of the whole programs, which
a busy machine disturbs less. Prints the medians over the pairs and their spread. Needs only Python.
"""

import argparse
import datetime
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME = re.compile(r"^I(\d{4}) (\d\d:\d\d:\d\d\.\d+) .*\] (Solving |Optimization Done)", re.MULTILINE)


def prepare(trainer, net, folder):
    subprocess.run([trainer, "dataset", "digits", folder / "digits"], check=True, capture_output=True)
    text = (ROOT / "models" / net / "train_test.prototxt").read_text(encoding="utf-8")
    (folder / "net.prototxt").write_text(text.replace("data/digits/", f"{folder}/digits/"),
                                         encoding="utf-8")


def run(trainer, net, folder, iterations, watched):
    """The seconds of the training, and the processor seconds of all its threads."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    command = [trainer, "train", f"--solver={ROOT}/models/{net}/solver.prototxt",
               "--set", f"net={folder}/net.prototxt", "--set", f"snapshot_prefix={folder}/snap",
               "--set", f"max_iter={iterations}"]
    if watched:
        command.append(f"--run={folder}/run")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "log").open("w", encoding="utf-8") as log:
        done = subprocess.run(command, stdout=log, stderr=log, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = (folder / "log").read_text(encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{text[-2000:]}")
    moments = [datetime.datetime.strptime(f"2024{date} {clock}", "%Y%m%d %H:%M:%S.%f")
               for date, clock, _ in TIME.findall(text)]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (moments[1] - moments[0]).total_seconds(), cpu


def spread(name, ratios):
    ratios = sorted(ratios)
    quarter = len(ratios) // 4
    print(f"{name}: median {statistics.median(ratios):.4f}, half of the pairs from "
          f"{ratios[quarter]:.4f} to {ratios[-1 - quarter]:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--net", default="lenet")
    flags = parser.parse_args()
    trainer = pathlib.Path(flags.trainer).resolve()
    clock, processors, plain = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(trainer, flags.net, folder)
        run(trainer, flags.net, folder, 100, True)  # warms the page cache
        for pair in range(flags.pairs):
            times = {}
            for watched in (True, False) if pair % 2 else (False, True):
                times[watched] = run(trainer, flags.net, folder, flags.iterations, watched)
            clock.append(times[True][0] / times[False][0])
            processors.append(times[True][1] / times[False][1])
            plain.append(times[False][0])
    print(f"{flags.net}, {flags.iterations} iterations in {statistics.median(plain):.2f} s, "
          f"{flags.pairs} pairs; watched / not watched:")
    spread("  time       ", clock)
    spread("  processors ", processors)


if __name__ == "__main__":
    main()
