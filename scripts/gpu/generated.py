"""Nets of models/ on data that every machine makes alike: for comparisons between devices.

Python's standard library alone. `Job(...)` writes a net with another source and batch, and a solver
for it; `losses()` runs it and reads what the log says.
"""

import pathlib
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]  # of the source tree, or of the bundle
LOSS_LINE = re.compile(r"Iteration (\d+)\b.*?, loss = ([-+.\w]+)")
# Images per iteration, small enough for a CPU, and a rate at which noise can be learned from.
BATCHES = {"lenet": 64, "cifar10_quick": 100, "caffenet": 8, "googlenet": 4, "resnet50": 8}
RATES = {"lenet": 0.01, "cifar10_quick": 0.0003, "caffenet": 0.0003, "googlenet": 0.0001,
         "resnet50": 0.00001}
CLASSES = {"cifar10_quick": 10}
SIDES = {"cifar10_quick": 32}

SOLVER = """net: "{net}"
base_lr: {rate} lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005
display: 1 max_iter: {iterations} snapshot_after_train: false solver_mode: CPU
random_seed: 1 snapshot_prefix: "{folder}/net"
"""


def run(command, timeout=None):
    """The output of a program that must end well."""
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          check=False, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:3]))} ended with {done.returncode}: "
                           f"{(done.stderr + done.stdout)[-1500:].strip()}")
    return done.stdout + done.stderr


def make_images(trainer, folder, side, classes):
    """An LMDB of noise on one colour per class, and its mean; the same bytes on every machine."""
    root = folder / f"images{side}"
    if (root / "mean.binaryproto").exists():
        return root
    root.mkdir(parents=True, exist_ok=True)
    draw = random.Random(side)
    lines = []
    for i in range(200 if side == 32 else 48):
        label = draw.randrange(classes)
        colour = random.Random(label).randbytes(3)
        noise = draw.randbytes(side * side * 3)
        pixels = bytes((c + n) >> 1 for c, n in zip(colour * (side * side), noise))
        (root / f"{i}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (side, side) + pixels)
        lines.append(f"{i}.ppm {label}\n")
    (root / "list.txt").write_text("".join(lines), encoding="utf-8")
    run([trainer, "dataset", "images", root, root / "list.txt", root / "lmdb"])
    run([trainer, "dataset", "mean", root / "lmdb", root / "mean.binaryproto"])
    return root


def make_digits(trainer, folder):
    root = folder / "digits"
    if not root.exists():
        run([trainer, "dataset", "digits", root, "--train=2000", "--test=100"])
    return root


class Job:
    """A net of models/ with generated data, in a folder for temporary files."""

    def __init__(self, trainer, name, folder):
        self.trainer, self.name, self.folder = trainer, name, pathlib.Path(folder)
        text = (ROOT / f"models/{name}/train_test.prototxt").read_text(encoding="utf-8")
        if name == "lenet":
            source = make_digits(trainer, self.folder) / "train_lmdb"
        else:
            images = make_images(trainer, self.folder, SIDES.get(name, 256),
                                 CLASSES.get(name, 1000))
            source = images / "lmdb"
            text = re.sub(r'mean_file: "[^"]*"', f'mean_file: "{images}/mean.binaryproto"', text)
        text = re.sub(r'source: "[^"]*"', f'source: "{source}"', text)
        text = re.sub(r"batch_size: \d+", f"batch_size: {BATCHES[name]}", text)
        self.net = self.folder / f"{name}.prototxt"
        self.net.write_text(text, encoding="utf-8")

    def command(self, iterations, flags=()):
        solver = self.folder / f"{self.name}_solver.prototxt"
        solver.write_text(SOLVER.format(net=self.net, folder=self.folder, rate=RATES[self.name],
                                        iterations=iterations), encoding="utf-8")
        return [self.trainer, "train", f"--solver={solver}", *flags]

    def losses(self, iterations, flags=(), timeout=None):
        """The loss of each iteration, as the log has it."""
        text = run(self.command(iterations, flags), timeout)
        found = {int(n): float(loss) for n, loss in LOSS_LINE.findall(text)}
        return [found[i] for i in range(iterations) if i in found]
