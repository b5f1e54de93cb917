#!/usr/bin/env python3
"""Measures how much slower training becomes when other programs share the cores.

    busy_machine.py --trainer=build/release/trainer [--before=OLD_TRAINER] [--rounds=5]
                    [--nets=lenet,cifar10_quick,resnet50] [--alone] [--flags="--ranks=2"]

Times whole runs of `trainer train`, including the start: alone on the machine, with one process
that computes all the time, and two runs at once (the slower one counts). A round has one run of
each, so that a change of the machine's clock affects all of them. --before alternates with another
binary, and --alone measures only runs alone. --flags are more flags for `trainer train`. The nets
for ImageNet read batches of 16 images of noise. Prints medians, the spread, and the ratios to the
time alone. Needs only Python.
"""

import argparse
import contextlib
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ITERATIONS = {"lenet": 300, "cifar10_quick": 60, "caffenet": 6, "googlenet": 6, "resnet50": 4,
              "mobilenet_v2": 8}
EXTRA_FLAGS = []  # of --flags
RECORDS = 10000  # of each of the six files of CIFAR-10

SOLVER = """net: "{net}"
base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005
display: 100 max_iter: {iterations} snapshot_after_train: false solver_mode: CPU random_seed: 1
snapshot_prefix: "{folder}/net"
"""


def make_digits(trainer, folder):
    subprocess.run([trainer, "dataset", "digits", folder / "digits"], check=True,
                   capture_output=True)
    return "data/digits", folder / "digits"


def make_noise(trainer, folder):
    """Writes noise in the format of CIFAR-10's files; it trains as fast as real images."""
    batches = folder / "batches"
    batches.mkdir()
    generator = random.Random(1)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = bytearray(generator.randbytes(RECORDS * 3073))
        records[::3073] = bytes(i % 10 for i in range(RECORDS))  # the labels
        (batches / f"{name}.bin").write_bytes(records)
    subprocess.run([trainer, "dataset", "cifar10", batches, folder / "cifar10"], check=True,
                   capture_output=True)
    return "data/cifar10", folder / "cifar10"


def make_images(trainer, folder):
    """Writes an LMDB of 64 images of noise."""
    root = folder / "images"
    root.mkdir()
    generator = random.Random(1)
    for i in range(64):
        (root / f"{i}.ppm").write_bytes(b"P6\n256 256\n255\n" + generator.randbytes(256 * 256 * 3))
    (root / "list.txt").write_text("".join(f"{i}.ppm {i}\n" for i in range(64)), encoding="utf-8")
    subprocess.run([trainer, "dataset", "images", root, root / "list.txt", root / "train_lmdb"],
                   check=True, capture_output=True)
    return "data/imagenet", root


DATA = {"lenet": make_digits, "cifar10_quick": make_noise}


def make_solver(name, trainer, folder):
    folder.mkdir()
    written, data = DATA.get(name, make_images)(trainer, folder)
    net = (ROOT / "models" / name / "train_test.prototxt").read_text(encoding="utf-8")
    if name not in DATA:
        net = re.sub(r"batch_size: \d+", "batch_size: 16", net)
    (folder / "net.prototxt").write_text(net.replace(written + "/", f"{data}/"), encoding="utf-8")
    solver = folder / "solver.prototxt"
    solver.write_text(SOLVER.format(net=folder / "net.prototxt", iterations=ITERATIONS[name],
                                    folder=folder), encoding="utf-8")
    return solver


def seconds(trainer, solver, runs=1):
    """The time of the slowest of `runs` concurrent runs."""
    command = [trainer, "train", f"--solver={solver}", *EXTRA_FLAGS]
    begin = time.perf_counter()
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for _ in range(runs)]
    status = [process.wait() for process in processes]
    if any(status):
        sys.exit(f"{' '.join(map(str, command))} failed with status {max(status)}")
    return time.perf_counter() - begin


@contextlib.contextmanager
def busy_process():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def beside_a_busy_process(trainer, solver):
    with busy_process():
        return seconds(trainer, solver)


SITUATIONS = {
    "alone": seconds,
    "beside a busy process": beside_a_busy_process,
    "two runs at once": lambda trainer, solver: seconds(trainer, solver, runs=2),
}


def measure(name, trainers, rounds, folder, situations):
    solver = make_solver(name, next(iter(trainers.values())), folder / name)
    times = {(label, what): [] for label in trainers for what in situations}
    for trainer in trainers.values():
        seconds(trainer, solver)  # warms the page cache
    for turn in range(rounds):
        order = list(trainers.items())
        for what in situations:
            for label, trainer in order if turn % 2 == 0 else reversed(order):
                times[label, what].append(SITUATIONS[what](trainer, solver))
    print(f"{name}, {ITERATIONS[name]} iterations, {rounds} rounds, {os.cpu_count()} cores")
    for label in trainers:
        alone = statistics.median(times[label, "alone"])
        for what in situations:
            found = sorted(times[label, what])
            middle = statistics.median(found)
            print(f"  {label:8}{what:24}{middle:7.2f} s  ({found[0]:.2f} to {found[-1]:.2f})"
                  f"{middle / alone:7.2f} x", flush=True)
    if len(trainers) == 2:
        pairs = [now / before for before, now in zip(times["before", "alone"],
                                                     times["now", "alone"])]
        print(f"  alone, now / before, of each round: median {statistics.median(pairs):.3f} "
              f"({min(pairs):.3f} to {max(pairs):.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--before", help="another binary, timed in turns with the first")
    parser.add_argument("--nets", default="lenet,cifar10_quick")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="only runs that have the machine")
    parser.add_argument("--flags", default="", help="more flags for `trainer train`")
    flags = parser.parse_args()
    EXTRA_FLAGS.extend(flags.flags.split())
    trainers = {"now": pathlib.Path(flags.trainer).resolve()}
    if flags.before:
        trainers["before"] = pathlib.Path(flags.before).resolve()
    situations = ["alone"] if flags.alone else list(SITUATIONS)
    with tempfile.TemporaryDirectory() as folder:
        for name in flags.nets.split(","):
            measure(name, trainers, flags.rounds, pathlib.Path(folder), situations)


if __name__ == "__main__":
    main()
