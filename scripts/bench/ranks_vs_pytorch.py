#!/usr/bin/env python3
"""Compares training steps of several ranks on one machine with one rank and with PyTorch's DDP.

    ranks_vs_pytorch.py --trainer=build/release/trainer [--nets=lenet,cifar10_quick,resnet50]
                        [--ranks=2] [--rounds=5] [--no-pytorch] [--json=FILE]

All ranks together share one batch (LeNet 64, cifar10_quick 100, ResNet-50 16). trainer runs as one
rank with as many threads as there are ranks, and as ranks of one thread each. PyTorch runs as
DistributedDataParallel over gloo: ranks of one thread each, batches in memory, fused SGD, the
faster of NCHW and channels_last. A round is one run of each. Needs Python with torch and numpy.
"""

import argparse
import gc
import math
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import tempfile

import torch

import lenet_vs_pytorch
import nets_vs_pytorch
from steps import ROOT, Setting, Trainer, cores, describe, machine, write_json

DDP_NETS = ("lenet", "cifar10_quick")  # the nets compared with PyTorch
SAMPLE_SECONDS = 3


def in_ranks(runner, ranks):
    """Returns the run on one rank with all cores, or on 1-thread ranks that share its batch."""
    env = ["env", f"OMP_NUM_THREADS={cores() if ranks == 1 else 1}"]
    flags = [] if ranks == 1 else [f"--ranks={ranks}", "--global_batch"]
    found = Trainer(runner.command[0], "", runner.warm_up)
    found.command = [*env, *runner.command, *flags]
    return found


def make_runner(name, args, folder):
    if name == "lenet":
        subset = folder / "digits"
        if not subset.exists():
            subprocess.run([args.trainer, "dataset", "digits", subset, "--minloglevel=1"], check=True,
                           capture_output=True)
        return lenet_vs_pytorch.make_trainer(args.trainer, subset, folder)
    ours = nets_vs_pytorch.OurNet(args.trainer, name, False, folder)
    return ours.runner(ours.steps_per_sample(), 1)


def make_module(name, setting, ranks):
    """Returns a Peer whose module is wrapped by DDP, on this rank's part of the batch."""
    source = lenet_vs_pytorch if name == "lenet" else nets_vs_pytorch
    if name == "lenet":
        source.BATCH //= ranks
        peer = source.make_peer(setting)
    else:
        source.BATCHES[name] //= ranks
        peer = source.make_peer(name, setting)
    peer.module = torch.nn.parallel.DistributedDataParallel(peer.module,
                                                            gradient_as_bucket_view=True)
    return peer


def ddp_rank(name, setting, rank, ranks, store, pipe):
    """Runs the number of steps that `pipe` asks for, and sends the milliseconds of a step."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % cores()]})
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                                         world_size=ranks)
    peer = make_module(name, setting, ranks)
    peer.milliseconds(5)
    while steps := pipe.recv():
        torch.distributed.barrier()
        pipe.send(peer.milliseconds(steps))
    torch.distributed.destroy_process_group()


class DdpPeer:
    """Processes that train with DDP on request and sleep otherwise."""

    def __init__(self, name, setting, ranks, folder):
        self.setting = setting
        context = multiprocessing.get_context("spawn")
        store = tempfile.mktemp(dir=folder)
        pipes = [context.Pipe() for _ in range(ranks)]
        self.pipes = [pipe[0] for pipe in pipes]
        self.processes = [
            context.Process(target=ddp_rank, args=(name, setting, rank, ranks, store, pipe[1]))
            for rank, pipe in enumerate(pipes)]
        for process in self.processes:
            process.start()

    def milliseconds(self, steps):
        for pipe in self.pipes:
            pipe.send(steps)
        return max(pipe.recv() for pipe in self.pipes)

    def stop(self):
        for pipe in self.pipes:
            pipe.send(0)
        for process in self.processes:
            process.join()


def best_ddp(name, ranks, folder):
    found = []
    for channels_last in (False, True):
        peer = DdpPeer(name, Setting(1, channels_last), ranks, folder)
        steps = max(2, math.ceil(1000 / peer.milliseconds(5)))
        found.append((statistics.median(peer.milliseconds(steps) for _ in range(3)), peer))
        print(f"  DDP, {ranks} ranks, {peer.setting}: {found[-1][0]:.2f} ms", flush=True)
    found.sort(key=lambda pair: pair[0])
    found[1][1].stop()
    return found[0][1]


def measure(name, args, folder):
    runner = make_runner(name, args, folder)
    programs = {"one rank": in_ranks(runner, 1), f"{args.ranks} ranks": in_ranks(runner, args.ranks)}
    peer = None
    if name in DDP_NETS and not args.no_pytorch:
        peer = best_ddp(name, args.ranks, folder)
        steps = max(2, math.ceil(SAMPLE_SECONDS * 1000 / peer.milliseconds(20)))
    times = {title: [] for title in [*programs, *(["DDP"] if peer else [])]}
    for program in programs.values():
        program.milliseconds()
    for _ in range(args.rounds):
        for title, program in programs.items():
            times[title].append(program.milliseconds())
        if peer:
            times["DDP"].append(peer.milliseconds(steps))
    if peer:
        peer.stop()
    for title, found in times.items():
        print(f"  {title}: {describe(found)}")
    medians = {title: statistics.median(found) for title, found in times.items()}
    ours = medians[f"{args.ranks} ranks"]
    print(f"  {args.ranks} ranks make {medians['one rank'] / ours:.2f} of the images/s of one rank")
    if peer:
        print(f"  {args.ranks} ranks are {medians['DDP'] / ours:.2f} times as fast as DDP")
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--nets", default="lenet,cifar10_quick,resnet50")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-pytorch", action="store_true")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    args.trainer = str(pathlib.Path(args.trainer).resolve())
    print(machine())
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.nets.split(","):
            print(name, flush=True)
            figures[name] = measure(name, args, pathlib.Path(folder))
            gc.collect()
            if args.json:
                write_json(args.json, figures)


if __name__ == "__main__":
    main()
