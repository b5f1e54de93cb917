"""What a step of check.py fills, and where it finds the programs and what the machine has."""

import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys

import losses

TESTS = ("backend_test", "layers_test", "rules_test", "net_test", "solver_test")


@dataclasses.dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = dataclasses.field(default_factory=list)
    figures: dict = dataclasses.field(default_factory=dict)

    def check(self, good, text):
        if good:
            self.passed += 1
        else:
            self.fail(text)

    def fail(self, text):
        self.failed += 1
        self.notes.append(text)


class Bundle:
    """Where the programs are, and what this machine has."""

    def __init__(self, root, folder, dry=False):
        self.root, self.folder, self.dry = root, folder, dry
        self.trainer = root / "trainer"
        self.stored = losses.read(root / "scripts/gpu/losses.txt")

    @functools.cached_property
    def query(self):
        done = subprocess.run([self.trainer, "device_query", "--json"], text=True, timeout=60,
                              capture_output=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def small(self, usual, dry):
        """What a step takes, or takes where it only shows that it works."""
        return dry if self.dry else usual

    @property
    def gpus(self):
        return self.query.get("gpus", [])

    def lacks(self, needs):
        """Why a step with these needs cannot run here, or ''."""
        if "gpu" in needs and not self.gpus:
            missing = self.query.get("cuda", {}).get("missing", ["trainer device_query failed"])
            return " ".join(missing) or "there is no GPU"
        if "two gpus" in needs and len(self.gpus) < 2:
            return "there is one GPU only"
        if "no gpu" in needs and self.gpus:
            return "there is a GPU"
        if "tests" in needs and not (self.root / "tests" / TESTS[0]).exists():
            return "the bundle has no test programs"
        if "sanitizer" in needs and not sanitizer():
            return "there is no compute-sanitizer of the CUDA toolkit"
        if "torch" in needs:
            return lacks_torch("True" if self.dry else "torch.cuda.is_available()")
        return ""

    def environment(self, **more):
        return {**os.environ, "TRAINER_SOURCE_DIR": str(self.root), **more}


def sanitizer():
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin")


@functools.cache
def lacks_torch(enough):
    ask = f"import torch; assert {enough}, 'PyTorch sees no GPU'"
    done = subprocess.run([sys.executable, "-c", ask], text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
