#!/usr/bin/env python3
"""Compares the accuracy of models/cifar10_quick after 5,000 iterations in trainer and in PyTorch.

    cifar10_accuracy.py --batches=cifar-10-batches-bin [--trainer=build/release/trainer]
                        [--iterations=5000] [--bf16] [--seeds=1]

Both train with the same settings on the same images in the same order: the binary version of
CIFAR-10, or any folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin in its format,
with any number of records. --bf16 also trains trainer in bf16. Needs Python with torch and numpy.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

from steps import ROOT, cifar_net, trained_accuracy

sys.path.insert(0, str(ROOT / "scripts"))
from peer_nets import PEERS  # noqa: E402

BATCH, TEST_BATCH = 100, 100
DEVIATIONS = {"conv1": 1e-4, "conv2": 0.01, "conv3": 0.01, "ip1": 0.1, "ip2": 0.1}


def read_records(files):
    """Images (n, 3, 32, 32) with the planes blue, green, red, and labels."""
    records = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
    pixels = records[:, 1:].reshape(-1, 3, 32, 32)
    return torch.tensor(pixels.astype(np.float32)), torch.tensor(records[:, 0].astype(np.int64))


def train_pytorch(batches, iterations, seed):
    data, labels = read_records(sorted(batches.glob("data_batch_*.bin")))
    test, answers = read_records([batches / "test_batch.bin"])
    mean = data.mean(0)
    torch.manual_seed(seed)
    net = PEERS["cifar10_quick"].make()
    for name, layer in net.layers.items():
        torch.nn.init.normal_(layer.weight, std=DEVIATIONS[name])
        torch.nn.init.zeros_(layer.bias)
    net.to(memory_format=torch.channels_last)
    groups = [{"params": [p for p in net.parameters() if (p.dim() > 1) == weights], "factor": factor}
              for weights, factor in ((True, 1), (False, 2))]
    optimizer = torch.optim.SGD(groups, lr=0.001, momentum=0.9, weight_decay=0.004)
    for iteration in range(iterations):
        rate = 0.001 if iteration < iterations * 4 // 5 else 0.0001
        for group in optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        at = torch.arange(iteration * BATCH, (iteration + 1) * BATCH) % len(data)
        x = (data[at] - mean).to(memory_format=torch.channels_last)
        optimizer.zero_grad()
        net(x, labels[at]).backward()
        optimizer.step()
    with torch.no_grad():
        right = sum(int((scores(net, test[i:i + TEST_BATCH] - mean).argmax(1)
                         == answers[i:i + TEST_BATCH]).sum())
                    for i in range(0, len(test), TEST_BATCH))
    return right / len(test)


def scores(net, x):
    """The scores that the peer's `loss` computes before the loss."""
    found = []
    entropy = F.cross_entropy
    F.cross_entropy = lambda logits, _: found.append(logits)
    try:
        net.loss(x, None)
    finally:
        F.cross_entropy = entropy
    return found[0]


def train_ours(binary, batches, folder, iterations, seed, more):
    model = ROOT / "models/cifar10_quick"
    net = cifar_net(binary, model, batches, folder)
    tests = (batches / "test_batch.bin").stat().st_size // 3073 // TEST_BATCH
    settings = [f"net={net}", f"max_iter={iterations}", f"test_iter={tests}",
                f"test_interval={iterations}", "test_initialization=false", "snapshot=0",
                "snapshot_after_train=false", f"stepvalue={iterations * 4 // 5}",
                f"snapshot_prefix={folder}/quick", f"random_seed={seed}", *more]
    return trained_accuracy(binary, model / "solver.prototxt", settings)


def report(name, train):
    begin = time.perf_counter()
    accuracy = train()
    print(f"{name}: {100 * accuracy:.2f} % in {time.perf_counter() - begin:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", required=True, type=pathlib.Path)
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--iterations", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=1, help="train with so many seeds")
    parser.add_argument("--bf16", action="store_true", help="train trainer in bf16 as well")
    args = parser.parse_args()
    binary = str(pathlib.Path(args.trainer).resolve())
    ours = {"trainer": []}
    if args.bf16:
        ours["trainer, bf16"] = ["default_forward_type=BFLOAT16"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in range(1, args.seeds + 1):
            for title, more in ours.items():
                report(f"{title}, seed {seed}",
                       lambda: train_ours(binary, args.batches, folder, args.iterations, seed, more))
            report(f"PyTorch, seed {seed}",
                   lambda: train_pytorch(args.batches, args.iterations, seed))


if __name__ == "__main__":
    main()
