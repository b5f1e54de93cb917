#!/usr/bin/env python3
"""Compares the accuracy of models/resnet18_cifar in trainer and in PyTorch, with several seeds.

    recipe_vs_pytorch.py --data=FOLDER [--trainer=build/release/trainer] [--epochs=30] [--seeds=3]
                         [--gpu] [--bf16] [--only=trainer|pytorch]

FOLDER has train.tar and test.tar with pictures of 32 x 32 pixels as class/name.jpg, or the binary
version of CIFAR-10 (data_batch_1.bin, ..., test_batch.bin) with any number of records. Both
programs train the same net by the same recipe: crops and flips, label smoothing, Nesterov's
momentum, warm-up and cosine, weight decay on weights alone, averaged weights. The random numbers
differ, so compare the accuracies with their spread over the seeds. Needs Python with torch, and
Pillow for tar files.
"""

import argparse
import io
import math
import pathlib
import statistics
import tarfile
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from steps import ROOT, cifar_net, trained_accuracy

MODEL = ROOT / "models/resnet18_cifar"
BATCH, TEST_BATCH, PAD, SIDE = 128, 100, 4, 32
BASE_LR, MOMENTUM, DECAY, SMOOTHING, EMA = 0.1, 0.9, 0.0005, 0.1, 0.999
MEAN, SCALE = (125.3, 123.0, 113.9), 0.0158


def records_of_tar(path, classes):
    """Returns records as in CIFAR's binary files: a label byte and planes of red, green, blue."""
    from PIL import Image
    records = []
    with tarfile.open(path) as tar:
        for member in sorted((m for m in tar if m.isfile()), key=lambda m: m.name):
            image = Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
            planes = np.asarray(image, np.uint8).transpose(2, 0, 1)
            label = classes.setdefault(pathlib.PurePath(member.name).parts[-2], len(classes))
            records.append(np.concatenate([[np.uint8(label)], planes.reshape(-1)]))
    return np.stack(records).astype(np.uint8)


def binary_files(data, folder):
    """Returns `data` if it has CIFAR's binary files, else `folder` with them from its tar files."""
    if (data / "test_batch.bin").exists():
        return data
    classes = {}
    for tar, name in (("train.tar", "data_batch_1.bin"), ("test.tar", "test_batch.bin")):
        records_of_tar(data / tar, classes).tofile(folder / name)
    return folder


def read_records(files):
    records = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
    pixels = torch.tensor(records[:, 1:].reshape(-1, 3, SIDE, SIDE))
    return pixels, torch.tensor(records[:, 0].astype(np.int64))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)), inplace=True)


def resnet18():
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        stride = 1 if outputs == 64 else 2
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.uniform_(module.weight, -math.sqrt(3 / 512), math.sqrt(3 / 512))
            nn.init.zeros_(module.bias)
    return net


def normalized(pixels):
    return (pixels.float() - torch.tensor(MEAN, device=pixels.device)[:, None, None]) * SCALE


def augmented(pixels):
    """Returns random crops of padded images; each is flipped with probability 1/2."""
    count = len(pixels)
    padded = F.pad(pixels, (PAD,) * 4)
    top, left = torch.randint(0, 2 * PAD + 1, (2, count), device=pixels.device)
    span = torch.arange(SIDE, device=pixels.device)
    columns = left[:, None] + span
    flips = torch.rand(count, device=pixels.device) < 0.5
    columns[flips] = columns[flips].flip(1)
    rows = top[:, None] + span
    item = torch.arange(count, device=pixels.device)[:, None, None]
    shifted = padded.permute(0, 2, 3, 1)[item, rows[:, :, None], columns[:, None, :]]
    return shifted.permute(0, 3, 1, 2)


def rate(iteration, warmup, length):
    if iteration < warmup:
        return BASE_LR * iteration / warmup
    return BASE_LR * (1 + math.cos(math.pi * (iteration - warmup) / (length - warmup))) / 2


def shuffled(records, device):
    """Yields batches of record numbers, with each record once per epoch."""
    left = torch.empty(0, dtype=torch.int64, device=device)
    while True:
        if len(left) < BATCH:
            left = torch.cat([left, torch.randperm(records, device=device)])
        yield left[:BATCH]
        left = left[BATCH:]


def train_pytorch(files, length, warmup, seed, device, bf16):
    data, labels = (t.to(device) for t in read_records(sorted(files.glob("data_batch_*.bin"))))
    test, answers = (t.to(device) for t in read_records([files / "test_batch.bin"]))
    torch.manual_seed(seed)
    net = resnet18().to(device, memory_format=torch.channels_last)
    groups = [{"params": [p for p in net.parameters() if (p.dim() > 1) == weights],
               "weight_decay": decay} for weights, decay in ((True, DECAY), (False, 0))]
    optimizer = torch.optim.SGD(groups, lr=BASE_LR, momentum=MOMENTUM, nesterov=True)
    averages = [p.detach().clone() for p in net.parameters()]
    cast = torch.autocast(device, torch.bfloat16, enabled=bf16)
    for iteration, numbers in zip(range(length), shuffled(len(data), device)):
        for group in optimizer.param_groups:
            group["lr"] = rate(iteration, warmup, length)
        x = normalized(augmented(data[numbers])).contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad()
        with cast:
            loss = F.cross_entropy(net(x), labels[numbers], label_smoothing=SMOOTHING)
        loss.backward()
        optimizer.step()
        keep = min(EMA, (1 + iteration + 1) / (10 + iteration + 1))
        with torch.no_grad():
            for average, weight in zip(averages, net.parameters()):
                average.lerp_(weight, 1 - keep)
    net.eval()
    with torch.no_grad(), cast:
        for average, weight in zip(averages, net.parameters()):
            weight.copy_(average)
        right = sum(int((net(normalized(test[i:i + TEST_BATCH])).argmax(1)
                         == answers[i:i + TEST_BATCH]).sum())
                    for i in range(0, len(test), TEST_BATCH))
    return right / len(test)


def train_ours(binary, files, folder, length, warmup, seed, more):
    net = cifar_net(binary, MODEL, files, folder, [f"--pad={PAD}"])
    settings = [f"net={net}", f"max_iter={length}", f"warmup_iter={warmup}",
                f"test_interval={length}", "snapshot=0", "snapshot_after_train=false",
                f"snapshot_prefix={folder}/recipe", f"random_seed={seed}"]
    return trained_accuracy(binary, MODEL / "solver.prototxt", settings, more)


def report(results):
    for name, accuracies in results.items():
        spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0
        print(f"{name}: {100 * statistics.mean(accuracies):.2f} % +- {100 * spread:.2f} "
              f"({', '.join(f'{100 * one:.2f}' for one in accuracies)})")
    if len(results) < 2:
        return
    ours, peer = results.values()
    difference = statistics.mean(ours) - statistics.mean(peer)
    within = min(ours) <= max(peer) and min(peer) <= max(ours)
    print(f"difference {100 * difference:+.2f} points; the ranges over the seeds "
          f"{'overlap' if within else 'do not overlap'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=3, help="train with so many seeds")
    parser.add_argument("--gpu", action="store_true", help="train both on a GPU")
    parser.add_argument("--bf16", action="store_true", help="train both in bf16")
    parser.add_argument("--only", choices=["trainer", "pytorch"], help="train one of them")
    args = parser.parse_args()
    binary = str(pathlib.Path(args.trainer).resolve())
    more = (["--gpu"] if args.gpu else []) + (
        ["--set", "default_forward_type=BFLOAT16"] if args.bf16 else [])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = binary_files(args.data, folder)
        records = sum(f.stat().st_size for f in files.glob("data_batch_*.bin")) // 3073
        length = args.epochs * records // BATCH
        warmup = length // args.epochs
        programs = {
            "trainer": lambda seed: train_ours(binary, files, folder, length, warmup, seed, more),
            "pytorch": lambda seed: train_pytorch(files, length, warmup, seed,
                                                  "cuda" if args.gpu else "cpu", args.bf16)}
        results = {name: [] for name in programs if args.only in (None, name)}
        for seed in range(1, args.seeds + 1):
            for program, accuracies in results.items():
                begin = time.perf_counter()
                accuracies.append(programs[program](seed))
                print(f"{program}, seed {seed}: {100 * accuracies[-1]:.2f} % in "
                      f"{time.perf_counter() - begin:.0f} s", flush=True)
        report(results)


if __name__ == "__main__":
    main()
