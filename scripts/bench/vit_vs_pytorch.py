#!/usr/bin/env python3
"""Training steps of models/vit_tiny on the CPU: trainer and PyTorch, in turns.

    vit_vs_pytorch.py --trainer=build/release/trainer [--batch=64] [--rounds=5] [--pytorch-only]
                      [--no-compile] [--json=FILE]

A step is forward, backward, clipping of the gradient's norm, and an update by AdamW. trainer reads
made-up images from an LMDB and mirrors them. PyTorch gets batches in memory, computes attention by
scaled_dot_product_attention and updates by its fused AdamW, eager or compiled, whichever is faster.
A round is one run of each. --no-compile leaves torch.compile out, which needs a C++ compiler. Needs
Python with torch and numpy.
"""

import argparse
import itertools
import math
import pathlib
import re
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

from nets_vs_pytorch import make_database
from steps import ROOT, Peer, Setting, Trainer, alternate, best_peer, cores, machine, write_json

WIDTH, HEADS, BLOCKS, PATCH, SIDE, CLASSES = 192, 3, 12, 4, 32, 10
SAMPLE_SECONDS = 8
RATE, DECAY = 0.0001, 0.05

SOLVER = """net: "{net}"
type: "AdamW" base_lr: {rate} momentum: 0.9 momentum2: 0.999 weight_decay: {decay}
clip_gradients: 1 lr_policy: "fixed" display: {display} max_iter: {iterations}
snapshot_after_train: false solver_mode: CPU random_seed: 1 snapshot_prefix: "{folder}/vit"
"""


class Block(nn.Module):
    """Attention, then two products with a GELU between them, each with a norm and a sum."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attention(self, x):
        n, length, _ = x.shape
        q, k, v = self.qkv(x).reshape(n, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(n, length, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Vit(nn.Module):
    """The net of models/vit_tiny, from images and labels to the loss."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.position = nn.Parameter(0.02 * torch.randn((SIDE // PATCH) ** 2, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm, self.score = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, data, label):
        x = self.patches(data).flatten(2).transpose(1, 2) + self.position
        x = self.norm(self.blocks(x)).mean(1)
        return F.cross_entropy(self.score(x), label)


class VitPeer(Peer):
    """A Peer with AdamW and clipping, as the solver has them."""

    def __init__(self, setting, batch):
        torch.manual_seed(1)
        data = [(torch.randn(batch, 3, SIDE, SIDE), torch.randint(0, CLASSES, (batch,)))
                for _ in range(4)]
        net = Vit()
        super().__init__(setting, net, data, lambda module: [{"params": module.parameters()}],
                         lr=RATE)
        self.params = list(net.parameters())
        learned = [p for p in self.params if p.dim() > 1 and p is not net.position]
        others = [p for p in self.params if p.dim() == 1 or p is net.position]
        self.optimizer = torch.optim.AdamW([{"params": learned, "weight_decay": DECAY},
                                            {"params": others, "weight_decay": 0}],
                                           lr=RATE, fused=True)

    def step(self, data, label):
        self.optimizer.zero_grad()
        self.module(data, label).backward()
        nn.utils.clip_grad_norm_(self.params, 1)
        self.optimizer.step()


def make_trainer(args, folder, steps):
    """Runs `steps` steps to warm up and `steps` that count."""
    data = make_database(str(pathlib.Path(args.trainer).resolve()), folder, SIDE, CLASSES, 1000)
    text = (ROOT / "models/vit_tiny/train_test.prototxt").read_text()
    text = re.sub(r'source: "[^"]*"', f'source: "{data}/lmdb"', text)
    text = re.sub(r'mean_file: "[^"]*"', f'mean_file: "{data}/mean.binaryproto"', text)
    text = re.sub(r"batch_size: \d+", f"batch_size: {args.batch}", text)
    (folder / "vit.prototxt").write_text(text)
    (folder / "solver.prototxt").write_text(SOLVER.format(
        net=folder / "vit.prototxt", folder=folder, rate=RATE, decay=DECAY, display=steps,
        iterations=2 * steps + 1))
    return Trainer(args.trainer, folder / "solver.prototxt", warm_up=steps)


def candidates(args):
    return [Setting(threads, compiled=compiled) for threads, compiled in
            itertools.product([cores()], [False, True] if args.compile else [False])]


def measure(args, folder):
    peer = best_peer(lambda setting: VitPeer(setting, args.batch), candidates(args), 2)
    steps = max(2, math.ceil(SAMPLE_SECONDS * 1000 / peer.milliseconds(2)))
    runner = None if args.pytorch_only else make_trainer(args, folder, steps)
    return {"batch": args.batch} | alternate(runner, peer, steps, args.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pytorch-only", action="store_true", help="needs no trainer")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True,
                        help="try torch.compile as well")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    print(f"{machine()}, f32\nvit_tiny, batches of {args.batch}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(args, pathlib.Path(folder))
    if args.json:
        write_json(args.json, {"vit_tiny": figures})


if __name__ == "__main__":
    main()
