#!/usr/bin/env python3
"""LeNet training steps with batches of 64 on the CPU: trainer and PyTorch, in turns.

    lenet_vs_pytorch.py --trainer=build/release/trainer --data=data/digits [--rounds=7] [--no-compile]
                        [--isa=avx2]

trainer reads its LMDB and decodes each batch. PyTorch gets batches in memory, at its fastest of 1 or
all threads, NCHW or channels_last, eager or compiled, with its fused SGD if it has one. --isa=avx2
limits both to AVX2 where the processor has AVX-512. A round is one run of each. Prints medians, the
spread and the ratio. Needs Python with torch.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import torch

from steps import (ROOT, Peer, Trainer, best_peer, describe, limit_isa, machine, settings,
                   write_json)

sys.path.insert(0, str(ROOT / "scripts"))
from peer_nets import LeNet  # noqa: E402

BATCH, STEPS = 64, 100

SOLVER = """net: "{net}"
base_lr: 0.01 lr_policy: "inv" gamma: 0.0001 power: 0.75 momentum: 0.9 weight_decay: 0.0005
display: {steps} max_iter: {iterations} snapshot_after_train: false solver_mode: CPU random_seed: 1
snapshot_prefix: "{folder}/lenet"
"""


def make_trainer(binary, data, folder):
    data = pathlib.Path(data).resolve()
    net = (ROOT / "models/lenet/train_test.prototxt").read_text()
    (folder / "net.prototxt").write_text(net.replace("data/digits/", f"{data}/"))
    # The first display interval warms up; five count.
    text = SOLVER.format(net=folder / "net.prototxt", steps=STEPS, iterations=6 * STEPS + 1,
                         folder=folder)
    (folder / "solver.prototxt").write_text(text)
    return Trainer(binary, folder / "solver.prototxt", warm_up=STEPS)


def make_peer(setting):
    torch.manual_seed(1)
    batches = [(torch.rand(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,)))
               for _ in range(STEPS)]

    def groups(module):
        params = list(module.parameters())
        return [{"params": [p for p in params if p.dim() > 1], "lr": 0.01},
                {"params": [p for p in params if p.dim() == 1], "lr": 0.02}]

    def rates(iteration):
        rate = 0.01 * (1 + 0.0001 * iteration) ** -0.75
        return rate, 2 * rate

    return Peer(setting, LeNet(), batches, groups, rates, momentum=0.9, weight_decay=0.0005)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--data", default=str(ROOT / "data/digits"), help="holds train_lmdb")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True,
                        help="try torch.compile as well")
    parser.add_argument("--isa", choices=["avx2"], help="both with these instructions at most")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    limit_isa(args.isa)
    print(f"LeNet, batches of {BATCH}, {machine()}")
    peer = best_peer(make_peer, settings(args.compile), STEPS)
    with tempfile.TemporaryDirectory() as folder:
        ours = make_trainer(args.trainer, args.data, pathlib.Path(folder))
        ours.milliseconds()  # brings the data into the page cache
        rounds = [(ours.milliseconds(), peer.milliseconds(STEPS)) for _ in range(args.rounds)]
    trainer_times, peer_times = ([r[i] for r in rounds] for i in (0, 1))
    ratio = statistics.median(peer_times) / statistics.median(trainer_times)
    print(f"trainer: {describe(trainer_times)}")
    print(f"PyTorch, {peer.setting}: {describe(peer_times)}")
    print(f"trainer is {ratio:.2f} times as fast")
    if args.json:
        write_json(args.json, {"trainer_ms": trainer_times, "pytorch_ms": peer_times,
                               "pytorch": str(peer.setting), "ratio": ratio})


if __name__ == "__main__":
    main()
