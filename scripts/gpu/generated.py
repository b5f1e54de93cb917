"""Nets of models/ on data that is the same on every machine, for comparisons between devices.

Uses only Python's standard library. `Data` makes data sets, each once. `Job(...)` writes a net with
such a source and another batch, and a solver for it. `losses()` runs it and reads the losses from
the log.
"""

import pathlib
import random
import re

import children

ROOT = pathlib.Path(__file__).resolve().parents[2]  # the root of the source tree or of the bundle
LOSS_LINE = re.compile(r"Iteration (\d+)\b.*?, loss = ([-+.\w]+)")
# Batch sizes small enough for a CPU, and learning rates at which the nets learn from noise.
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


class Data:
    """Data sets in a temporary folder. Creating the same set is not safe from several threads."""

    def __init__(self, trainer, folder):
        self.trainer, self.folder = trainer, pathlib.Path(folder)

    def dataset(self, *words, seconds=120):
        children.run_well([self.trainer, "dataset", *words], seconds)

    def noise(self, side, classes):
        """Makes an LMDB of noise on one colour per class, and its mean, the same everywhere."""
        root = self.folder / f"images{side}"
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
        self.dataset("images", root, root / "list.txt", root / "lmdb")
        self.dataset("mean", root / "lmdb", root / "mean.binaryproto")
        return root

    def digits(self, train=2000, test=100):
        root = self.folder / f"digits{train}_{test}"
        if not root.exists():
            self.dataset("digits", root, f"--train={train}", f"--test={test}")
        return root

    def enlarged(self, name, count, side, size, flags=()):
        """Makes an LMDB of size x size images of ten classes, scaled from side x side noise."""
        root = self.folder / name
        if (root / "lmdb").exists():
            return root / "lmdb"
        root.mkdir(parents=True)
        draw = random.Random(side)
        for i in range(count):
            pixels = draw.randbytes(side * side * 3)
            (root / f"{i}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (side, side) + pixels)
        lines = [f"{i}.ppm {i % 10}\n" for i in range(count)]
        (root / "list.txt").write_text("".join(lines), encoding="utf-8")
        self.dataset("images", root, root / "list.txt", root / "lmdb", f"--resize_height={size}",
                     f"--resize_width={size}", *flags)
        return root / "lmdb"

    def pixels(self, count, size):
        """Makes records of pixels, each image of one colour, like DummyData's constant."""
        return self.enlarged("pixels", count, 1, size)

    def jpegs(self, count, size):
        """Makes JPEG files as large as photographs: about 20 KB for 256 x 256."""
        return self.enlarged("jpegs", count, size // 5, size, ("--encoded", "--encode_type=jpg"))


def with_source(text, source, batch, mean=None):
    """Returns a net's text with another database and batch."""
    text = re.sub(r'source: "[^"]*"', f'source: "{source}"', text)
    if mean is not None:
        text = re.sub(r'mean_file: "[^"]*"', f'mean_file: "{mean}"', text)
    return re.sub(r"batch_size: \d+", f"batch_size: {batch}", text)


def model(name):
    return (ROOT / f"models/{name}/train_test.prototxt").read_text(encoding="utf-8")


class Job:
    """A net of models/ with generated data. Jobs that run at the same time need different tags."""

    def __init__(self, data, name, tag=""):
        self.trainer, self.name = data.trainer, name
        self.folder = data.folder / f"{name}{tag}"
        self.folder.mkdir(exist_ok=True)
        source, mean = data.digits() / "train_lmdb", None
        if name != "lenet":
            images = data.noise(SIDES.get(name, 256), CLASSES.get(name, 1000))
            source, mean = images / "lmdb", images / "mean.binaryproto"
        self.net = self.folder / "net.prototxt"
        self.solver = self.folder / "solver.prototxt"
        self.net.write_text(with_source(model(name), source, BATCHES[name], mean), encoding="utf-8")
        self.write_solver(1)

    def write_solver(self, iterations):
        self.solver.write_text(SOLVER.format(net=self.net, folder=self.folder,
                                             rate=RATES[self.name], iterations=iterations),
                               encoding="utf-8")

    def command(self, iterations, flags=()):
        self.write_solver(iterations)
        return [self.trainer, "train", f"--solver={self.solver}", *flags]

    def losses(self, iterations, flags=(), timeout=None):
        """Returns the loss of each iteration from the log."""
        text = children.run_well(self.command(iterations, flags), timeout)
        found = {int(n): float(loss) for n, loss in LOSS_LINE.findall(text)}
        return [found[i] for i in range(iterations) if i in found]
