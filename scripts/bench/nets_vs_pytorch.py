#!/usr/bin/env python3
"""Training steps of the nets of models/ on the CPU: trainer and PyTorch, in turns.

    nets_vs_pytorch.py --trainer=build/release/trainer [--nets=resnet50,googlenet] [--rounds=5]
                       [--bf16] [--memory] [--pytorch-only] [--no-compile] [--isa=avx2]
                       [--json=FILE]

A step is forward, backward and update. trainer reads made-up images from an LMDB, crops and mirrors
them as models/ says. PyTorch (scripts/peer_nets.py) gets batches in memory, at its fastest of NCHW
or channels_last, eager or compiled (for the small net also of 1 or all threads), with its fused
SGD, and with autocast for --bf16. --no-compile leaves torch.compile out, which needs a C++
compiler. --isa=avx2 limits both to AVX2 where the processor has AVX-512. A round is one run of
each. --memory measures the largest resident set of a process of each instead of the time.
Needs Python with torch and numpy.
"""

import argparse
import gc
import math
import multiprocessing
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch

from steps import (ROOT, Peer, Trainer, alternate, best_peer, limit_isa, machine, peak_mib,
                   settings, write_json)

sys.path.insert(0, str(ROOT / "scripts"))
from peer_nets import PEERS  # noqa: E402

BATCHES = {"cifar10_quick": 100, "caffenet": 64, "googlenet": 16, "resnet50": 16,
           "mobilenet_v2": 32, "alexnet": 64}
DEFAULT_NETS = [name for name in BATCHES if name != "alexnet"]
SMALL = ("cifar10_quick",)
SAMPLE_SECONDS = 4
MEMORY_STEPS = 3

SOLVER = """net: "{net}"
base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 weight_decay: {decay}
display: {display} max_iter: {iterations} snapshot_after_train: false solver_mode: CPU
random_seed: 1 snapshot_prefix: "{folder}/net"
"""


def make_database(binary, folder, side, classes, count):
    """An LMDB of noise, and its mean; images of one size share them."""
    root = folder / f"images{side}"
    if root.exists():
        return root
    root.mkdir()
    rng = np.random.default_rng(1)
    lines = []
    for i in range(count):
        pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        (root / f"{i}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (side, side) + pixels.tobytes())
        lines.append(f"{i}.ppm {rng.integers(classes)}\n")
    (root / "list.txt").write_text("".join(lines))
    for task in (["images", root, root / "list.txt", root / "lmdb"],
                 ["mean", root / "lmdb", root / "mean.binaryproto"]):
        subprocess.run([binary, "dataset", *task], check=True, capture_output=True)
    return root


class OurNet:
    """A net of models/ with other data and another batch, and a solver for it."""

    def __init__(self, binary, name, bf16, folder):
        self.binary, self.name, self.folder = str(pathlib.Path(binary).resolve()), name, folder
        self.flags = ["--set", "default_forward_type=BFLOAT16"] if bf16 else []
        peer = PEERS[name]
        side = 32 if name in SMALL else 256
        data = make_database(self.binary, folder, side, peer.classes, 1000 if side == 32 else 128)
        text = (ROOT / f"models/{name}/train_test.prototxt").read_text()
        text = re.sub(r'source: "[^"]*"', f'source: "{data}/lmdb"', text)
        text = re.sub(r'mean_file: "[^"]*"', f'mean_file: "{data}/mean.binaryproto"', text)
        text = re.sub(r"batch_size: \d+", f"batch_size: {BATCHES[name]}", text)
        (folder / f"{name}.prototxt").write_text(text)

    def runner(self, display, intervals):
        """Returns a Trainer whose first interval of `display` steps warms up."""
        text = SOLVER.format(net=self.folder / f"{self.name}.prototxt", folder=self.folder,
                             decay=PEERS[self.name].weight_decay, display=display,
                             iterations=(intervals + 1) * display + 1)
        solver = self.folder / f"{self.name}_solver.prototxt"
        solver.write_text(text)
        return Trainer(self.binary, solver, warm_up=display, flags=self.flags)

    def steps_per_sample(self):
        """Returns the number of steps that take SAMPLE_SECONDS."""
        steps, took = 2, 0
        while True:
            took = self.runner(steps, 1).milliseconds() * steps / 1000
            if took > SAMPLE_SECONDS / 8:
                return max(2, math.ceil(SAMPLE_SECONDS * steps / took))
            steps *= 8


def make_peer(name, setting, batches=4):
    torch.manual_seed(1)
    peer = PEERS[name]
    module = peer.make()
    shape = (BATCHES[name], *peer.image)
    data = [(torch.randn(shape), torch.randint(0, peer.classes, shape[:1])) for _ in range(batches)]

    def groups(net):
        found = {}
        for param, (rate, decay) in zip(net.parameters(), peer.multipliers(net)):
            found.setdefault((rate, decay), []).append(param)
        return [{"params": params, "lr": 0.0001 * rate, "weight_decay": peer.weight_decay * decay}
                for (rate, decay), params in found.items()]

    return Peer(setting, module, data, groups, momentum=0.9)


def pytorch_peak(name, setting, answer):
    """Measures PyTorch's peak memory; must run in a process of its own."""
    alone = peak_mib()
    make_peer(name, setting, batches=1).milliseconds(MEMORY_STEPS)
    answer.put((peak_mib(), alone))


def measure_memory(name, args, ours):
    context = multiprocessing.get_context("spawn")
    found = []
    for setting in settings(args.compile, args.bf16, one_thread=False):
        answer = context.Queue()
        child = context.Process(target=pytorch_peak, args=(name, setting, answer))
        child.start()
        peak, alone = answer.get()
        child.join()
        print(f"  PyTorch, {setting}: {peak:.0f} MiB, of these {alone:.0f} before the net")
        found.append(peak)
    figures = {"pytorch_mib": found}
    if ours:
        peak = ours.runner(1, MEMORY_STEPS - 1).peak_mib(ours.folder / "log")
        figures |= {"trainer_mib": peak, "memory_ratio": peak / min(found)}
        print(f"  trainer: {peak:.0f} MiB, {figures['memory_ratio']:.2f} of PyTorch's least")
    return figures


def measure_time(name, args, ours):
    small = name in SMALL
    peer = best_peer(lambda setting: make_peer(name, setting),
                     settings(args.compile, args.bf16, one_thread=small), 20 if small else 2)
    steps = max(2, math.ceil(SAMPLE_SECONDS * 1000 / peer.milliseconds(20 if small else 2)))
    runner = ours.runner(ours.steps_per_sample(), 1) if ours else None
    return alternate(runner, peer, steps, args.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--nets", default=",".join(DEFAULT_NETS), help="with commas between")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bf16", action="store_true", help="bf16 forward and backward of both")
    parser.add_argument("--memory", action="store_true", help="measure memory, not time")
    parser.add_argument("--pytorch-only", action="store_true", help="needs no trainer")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True,
                        help="try torch.compile as well")
    parser.add_argument("--isa", choices=["avx2"], help="both with these instructions at most")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    limit_isa(args.isa)
    print(machine() + (", bf16" if args.bf16 else ", f32"))
    figures = {"bf16": args.bf16}
    measure = measure_memory if args.memory else measure_time
    with tempfile.TemporaryDirectory() as folder:
        for name in args.nets.split(","):
            if name not in BATCHES:
                parser.error(f"no net '{name}'; there are {', '.join(BATCHES)}")
            print(f"{name}, batches of {BATCHES[name]}", flush=True)
            ours = None
            if not args.pytorch_only:
                ours = OurNet(args.trainer, name, args.bf16, pathlib.Path(folder))
            figures[name] = measure(name, args, ours)
            gc.collect()
            if args.json:
                write_json(args.json, figures)


if __name__ == "__main__":
    main()
