"""Compares training steps of trainer and PyTorch on one GPU, alternately, and measures their input.

A step is forward, backward and update on one batch in GPU memory: trainer's DummyData and the
peer's tensor hold the same numbers. PyTorch (peer.py) runs in channels_last, compiled, with
autocast for 16 bits and its fused SGD; small nets use its CUDA graphs. trainer has TF32 off.
"""

import dataclasses
import json
import re
import statistics
import time

import children
from generated import model, with_source
from peers import Peers

FLAGS = {"f32": ["--notf32"], "bf16": ["--notf32", "--set", "default_forward_type=BFLOAT16"],
         "f16": ["--notf32", "--set", "default_forward_type=FLOAT16"]}
IMAGES = {"lenet": (1, 28, 28), "cifar10_quick": (3, 32, 32), "caffenet": (3, 227, 227),
          "googlenet": (3, 224, 224), "resnet50": (3, 224, 224)}
RATE_LINE = re.compile(r"Iteration (\d+) \(([\d.e+-]+) iter/s")
LARGE_NETS = ("caffenet", "googlenet", "resnet50")  # small nets mostly use the context's memory
ROUNDS, SAMPLE_SECONDS = 2, 1.2


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table, and its target."""
    net: str
    mode: str
    batch: int
    compile: str  # mode of torch.compile
    least: float  # target: multiple of PyTorch's speed
    first: int  # steps of a first, short run

    @property
    def key(self):
        return self.net, self.mode

    def __str__(self):
        return f"{self.net} {self.mode} bs{self.batch}"


GRAPHS = "reduce-overhead"
FIRST_ROWS = (
    Row("resnet50", "f16", 256, "default", 1.05, 4),
    Row("resnet50", "bf16", 256, "default", 1.05, 4),
    Row("lenet", "f32", 64, GRAPHS, 1.3, 300),
)
MORE_ROWS = (
    Row("lenet", "f16", 64, GRAPHS, 1.3, 300),
    Row("cifar10_quick", "f16", 100, GRAPHS, 1.3, 300),
    Row("googlenet", "f16", 128, "default", 1.2, 8),
    Row("caffenet", "f16", 256, "default", 1.2, 8),
    Row("cifar10_quick", "f32", 100, GRAPHS, 1.3, 300),
)
ROWS = FIRST_ROWS + MORE_ROWS
DRY_ROWS = (Row("lenet", "f16", 64, GRAPHS, 1.3, 2),
            Row("cifar10_quick", "f32", 100, GRAPHS, 1.3, 2))

DATA = """layer {{
  name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{
    shape {{ {shape} }} shape {{ dim: {batch} }}
    data_filler {{ type: "constant" value: 0.5 }} data_filler {{ type: "constant" value: 1 }}
  }}
}}
"""
SOLVER = """net: "{net}"
base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0001
display: {display} max_iter: {iterations} snapshot_after_train: false solver_mode: GPU
random_seed: 1 snapshot_prefix: "{folder}/net"
"""


def start_peers(bundle):
    """Starts PyTorch's processes, which begin to compile."""
    if bundle.python and bundle.peers is None:
        bundle.peers = Peers(bundle, bundle.small(ROWS, DRY_ROWS))


def layers_of(text):
    """Returns (the text before the layers, each layer's text), without comments."""
    text = re.sub(r"#[^\n]*", "", text)
    head, rest = text.split("layer {", 1)
    parts = re.split(r"^layer \{", "layer {" + rest, flags=re.MULTILINE)
    return head, ["layer {" + part for part in parts if part.strip()]


class OurNet:
    """A training net of models/ on a batch in memory, or on a database."""

    def __init__(self, bundle, row, source=None):
        self.bundle, self.row = bundle, row
        self.batch = bundle.small(row.batch, 2)
        name = source.parent.name if source else "memory"
        self.folder = bundle.folder / f"{row.net}_{row.mode}_{name}"
        self.folder.mkdir(exist_ok=True)
        # Uses its own cache: earlier steps chose algorithms while other programs used the GPU.
        self.flags = ["--gpu=0", f"--gpu_cache={bundle.folder}/measured", *FLAGS[row.mode]]
        self.net = self.folder / "net.prototxt"
        self.net.write_text(self.text(source), encoding="utf-8")

    def text(self, source):
        head, layers = layers_of(model(self.row.net))
        if source:
            text = head + "".join(layer for layer in layers if "TEST" not in layer)
            text = re.sub(r'mean_file: "[^"]*"', "mean_value: 128", text)
            return with_source(text, source, self.batch)
        shape = " ".join(f"dim: {n}" for n in (self.batch, *IMAGES[self.row.net]))
        kept = [layer for layer in layers if 'type: "Data"' not in layer and "TEST" not in layer]
        return head + DATA.format(shape=shape, batch=self.batch) + "".join(kept)

    def solver(self, display):
        """Writes a solver for three display intervals. The first one warms up."""
        path = self.folder / "solver.prototxt"
        path.write_text(SOLVER.format(net=self.net, folder=self.folder, display=display,
                                      iterations=3 * display + 1), encoding="utf-8")
        return path

    def milliseconds(self, display, timeout, flags=()):
        """Returns the median milliseconds of a step."""
        text = children.run_well([self.bundle.trainer, "train", f"--solver={self.solver(display)}",
                                  *self.flags, *flags], timeout)
        rates = [float(rate) for i, rate in RATE_LINE.findall(text) if int(i) > display]
        return 1000 / statistics.median(rates)

    def calibrate(self, timeout):
        """Returns the steps that fill a sample. Later runs find the algorithms that it measured."""
        first = self.bundle.small(self.row.first, 1)
        return max(first, round(1000 * SAMPLE_SECONDS / self.milliseconds(first, timeout)))

    def watched(self, display, timeout):
        """Returns the milliseconds of a step and the bytes of GPU memory of the run, with its
        context, or None if the driver does not report them."""
        before = self.bundle.used_memory()
        folder = self.folder / "watched"
        time_of_step = self.milliseconds(display, timeout, [f"--run={folder}"])
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        told = [json.loads(line).get("memory_bytes") for line in lines if '"gpu"' in line]
        held = [number for number in told if number is not None]
        return time_of_step, max(held) - before if held and before is not None else None


def speed(bundle, result, seconds):
    """Measures the first rows of the table: trainer and PyTorch on the same GPU, alternately."""
    measure_rows(bundle, result, seconds, bundle.small(FIRST_ROWS, DRY_ROWS))


def more_speed(bundle, result, seconds):
    """Measures the other rows."""
    measure_rows(bundle, result, seconds, bundle.small(MORE_ROWS, ()))


STEPS = (speed, more_speed)


def measure_rows(bundle, result, seconds, rows):
    end = time.monotonic() + seconds
    start_peers(bundle)
    peers = bundle.peers.peers if bundle.peers else {}
    if bundle.peers:
        bundle.peers.settle([row.key for row in rows], bundle.small(seconds / 4, 600))
    slowest = 0
    for row in rows:
        left = end - time.monotonic()
        if left < slowest / 2 + 5:
            result.cut(f"{row}: no time was left")
            continue
        begin = time.monotonic()
        peer = peers.get(row.key)
        try:
            compare(bundle, result, row, peer if peer and peer.ready(0) else None, left)
        except (RuntimeError, statistics.StatisticsError) as error:
            result.fail(f"{row}: {error}")
        if peer:
            result.note(f"{row}: PyTorch is {peer.setting or 'not ready'}")
            result.detail("versions", peer.versions)
            peer.end()  # frees its memory
        slowest = max(slowest, time.monotonic() - begin)


def compare(bundle, result, row, peer, seconds):
    """Measures one row: alternating speeds, and memory."""
    ours, end = OurNet(bundle, row), time.monotonic() + seconds

    def left():
        return end - time.monotonic()

    steps = ours.calibrate(left())
    if peer:
        peer.quiet()
    our_ms, peer_ms, told, held = [], [], None, None
    rounds = bundle.small(ROUNDS, 1)
    for i in range(rounds):
        if i + 1 == rounds and row.net in LARGE_NETS:
            milliseconds, held = ours.watched(steps, left())
        else:
            milliseconds = ours.milliseconds(steps, left())
        our_ms.append(milliseconds)
        sample = peer.sample(SAMPLE_SECONDS) if peer else None
        if sample:
            told = sample
            peer_ms.append(sample["ms"])
    our_median = statistics.median(our_ms)
    bundle.rates[row.key] = 1000 * ours.batch / our_median
    result.measure(str(row), bundle.rates[row.key], "images/s")
    result.check(True, "")
    result.detail(str(row), {"trainer_ms": our_ms, "pytorch_ms": peer_ms, "pytorch": told,
                             "setting": peer.setting if peer else "none"})
    if peer_ms:
        kind = "" if peer.setting.startswith("compile") else " (not compiled)"
        result.measure(f"{row}, speed", statistics.median(peer_ms) / our_median,
                       f"times PyTorch's{kind}", least=row.least)
    compare_memory(result, row, told, held)


def compare_memory(result, row, told, held):
    """Compares the memory. It includes trainer's context, but not PyTorch's."""
    if not told or "reserved_bytes" not in told or held is None:
        return
    result.detail(f"{row}, bytes held", held)
    result.measure(f"{row}, memory", held / told["reserved_bytes"], "times PyTorch's", most=0.9)
