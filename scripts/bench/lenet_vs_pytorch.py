#!/usr/bin/env python3
"""LeNet training steps with batches of 64 on the CPU: trainer and PyTorch, in turns.

    lenet_vs_pytorch.py --trainer=build/release/trainer --data=data/digits [--rounds=7] [--compile]

trainer reads its LMDB and decodes each batch; PyTorch takes batches that lie in memory, at the best
of 1 or all threads, NCHW or channels_last, with its fused SGD where it has one. A round is one run
of each. Prints medians, the spread and the ratio. Needs Python with torch.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH, STEPS = 64, 100
RATE_LINE = re.compile(r"Iteration (\d+) \(([\d.e+-]+) iter/s")

SOLVER = """net: "{net}"
base_lr: 0.01 lr_policy: "inv" gamma: 0.0001 power: 0.75 momentum: 0.9 weight_decay: 0.0005
display: {steps} max_iter: {iterations} snapshot_after_train: false solver_mode: CPU random_seed: 1
snapshot_prefix: "{folder}/lenet"
"""


class Trainer:
    """Runs the binary and reads the steps per second that it logs."""

    def __init__(self, binary, data, folder):
        self.binary = str(pathlib.Path(binary).resolve())
        data = pathlib.Path(data).resolve()
        net = (ROOT / "models/lenet/train_test.prototxt").read_text()
        (folder / "net.prototxt").write_text(net.replace("data/digits/", f"{data}/"))
        # The first display interval warms up; five count.
        text = SOLVER.format(net=folder / "net.prototxt", steps=STEPS, iterations=6 * STEPS + 1,
                             folder=folder)
        self.solver = folder / "solver.prototxt"
        self.solver.write_text(text)

    def milliseconds(self):
        done = subprocess.run([self.binary, "train", f"--solver={self.solver}"], text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"trainer failed with status {done.returncode}:\n{done.stderr[-2000:]}")
        rates = [float(rate) for iteration, rate in RATE_LINE.findall(done.stdout + done.stderr)
                 if int(iteration) > STEPS]
        if not rates:
            sys.exit("trainer printed no 'Iteration N (x iter/s, ...)' line")
        return 1000 / statistics.median(rates)


class Peer:
    """LeNet in PyTorch, at one setting."""

    def __init__(self, threads, channels_last, compiled=False):
        self.name = (f"{threads} thread{'s' if threads > 1 else ''}, {'channels_last' if channels_last else 'NCHW'}"
                     f"{', compiled' if compiled else ''}")
        self.threads = threads
        torch.manual_seed(1)
        layout = torch.channels_last if channels_last else torch.contiguous_format
        model = nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5),
                              nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(),
                              nn.Linear(500, 10)).to(memory_format=layout)
        self.batches = [(torch.rand(BATCH, 1, 28, 28).to(memory_format=layout),
                         torch.randint(0, 10, (BATCH,))) for _ in range(STEPS)]
        weights = [p for p in model.parameters() if p.dim() > 1]
        biases = [p for p in model.parameters() if p.dim() == 1]
        self.optimizer = make_sgd([{"params": weights, "lr": 0.01}, {"params": biases, "lr": 0.02}])
        self.model = torch.compile(model) if compiled else model
        self.loss = nn.CrossEntropyLoss()
        self.iteration = 0

    def milliseconds(self):
        torch.set_num_threads(self.threads)
        begin = time.perf_counter()
        for data, label in self.batches:
            rate = 0.01 * (1 + 0.0001 * self.iteration) ** -0.75
            self.optimizer.param_groups[0]["lr"] = rate
            self.optimizer.param_groups[1]["lr"] = 2 * rate
            self.optimizer.zero_grad()
            self.loss(self.model(data), label).backward()
            self.optimizer.step()
            self.iteration += 1
        return (time.perf_counter() - begin) * 1000 / STEPS


def make_sgd(groups):
    try:
        return torch.optim.SGD(groups, momentum=0.9, weight_decay=0.0005, fused=True)
    except (RuntimeError, TypeError):
        return torch.optim.SGD(groups, momentum=0.9, weight_decay=0.0005)


def best_peer(compiled):
    """Tries every setting, warmed up, and keeps the fastest."""
    cores = len(os.sched_getaffinity(0))
    found = []
    for threads in sorted({1, cores}):
        for channels_last in (False, True):
            for with_compile in ([False, True] if compiled else [False]):
                peer = Peer(threads, channels_last, with_compile)
                peer.milliseconds()
                found.append((statistics.median(peer.milliseconds() for _ in range(3)), peer))
                print(f"  PyTorch, {peer.name}: {found[-1][0]:.2f} ms", flush=True)
    return min(found, key=lambda entry: entry[0])[1]


def describe(times):
    return (f"median {statistics.median(times):.2f} ms "
            f"({min(times):.2f} to {max(times):.2f} over {len(times)} rounds)")


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--data", default=str(ROOT / "data/digits"), help="holds train_lmdb")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="try torch.compile as well")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    print(f"LeNet, batches of {BATCH}, {len(os.sched_getaffinity(0))} cores of {processor()}, "
          f"torch {torch.__version__}")
    peer = best_peer(args.compile)
    with tempfile.TemporaryDirectory() as folder:
        ours = Trainer(args.trainer, args.data, pathlib.Path(folder))
        ours.milliseconds()  # brings the data into the page cache
        rounds = [(ours.milliseconds(), peer.milliseconds()) for _ in range(args.rounds)]
    trainer_times, peer_times = ([r[i] for r in rounds] for i in (0, 1))
    ratio = statistics.median(peer_times) / statistics.median(trainer_times)
    print(f"trainer: {describe(trainer_times)}")
    print(f"PyTorch, {peer.name}: {describe(peer_times)}")
    print(f"trainer is {ratio:.2f} times as fast")
    if args.json:
        figures = {"trainer_ms": trainer_times, "pytorch_ms": peer_times, "pytorch": peer.name,
                   "ratio": ratio, "torch": torch.__version__, "processor": processor()}
        pathlib.Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
