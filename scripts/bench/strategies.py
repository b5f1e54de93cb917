#!/usr/bin/env python3
"""LeNet trained by each strategy on several ranks: accuracy, time, bytes sent and staleness.

    strategies.py [--trainer=build/release/trainer] [--ranks=4] [--iterations=1000] [--rate=0.01]
                  [--period=10] [--probability=0.1] [--slow] [--digits=60000] [--only=local,easgd]

Each run sees ranks * iterations batches of 64 / ranks drawn digits; tests take 10,000 others. The
bytes are those that all ranks sent, of synchronous replicas as a ring sends them. With --slow the
last rank runs half of the time: it is stopped for 20 ms and goes on for 20 ms, in turns.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("synchronous", "local", "easgd", "gossip", "parameter_server")
TURN = 0.02  # seconds that a slow rank is stopped, and goes on
BATCH = 64
RANK = re.compile(r"rank (\d+) \([^,]+, process (\d+)\)")
ACCURACY = re.compile(r"Test net output #\d+: accuracy = ([\d.]+)")
SENT = re.compile(r"Strategy \w+: .*?(\d+) KiB sent(?:; staleness ([\d.e+-]+) .*?, (\d+) at most)?")


def make_solver(args, folder):
    net = (ROOT / "models/lenet/train_test.prototxt").read_text()
    net = net.replace("data/digits/", f"{folder}/digits/")
    (folder / "net.prototxt").write_text(net.replace("batch_size: 64",
                                                     f"batch_size: {BATCH // args.ranks}"))
    (folder / "solver.prototxt").write_text(
        f'net: "{folder}/net.prototxt"\nbase_lr: {args.rate}\nmomentum: 0.9\n'
        'weight_decay: 0.0005\nlr_policy: "inv" gamma: 0.0001 power: 0.75\nrandom_seed: 1\n'
        f'max_iter: {args.iterations}\ntest_iter: 100\ntest_interval: {args.iterations}\n'
        f'test_initialization: false\nsnapshot_prefix: "{folder}/s"\n')
    return folder / "solver.prototxt"


def slow_down(process, over):
    """Stops a process for half of its time."""
    while not over.is_set():
        for sign in (signal.SIGSTOP, signal.SIGCONT):
            try:
                os.kill(process, sign)
            except ProcessLookupError:
                return
            time.sleep(TURN)


def train(args, name, solver):
    """Seconds from the first iteration on, and the log."""
    command = [args.trainer, "train", f"--solver={solver}", f"--ranks={args.ranks}",
               f"--strategy={name}", f"--set=strategy_param.period={args.period}",
               f"--set=strategy_param.probability={args.probability}"]
    over, begin, lines = threading.Event(), None, []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}) as run:
        processes = {}
        for line in run.stderr:
            lines.append(line)
            if found := RANK.search(line):
                processes[int(found.group(1))] = int(found.group(2))
            if "Starting Optimization" in line:
                begin = time.monotonic()
                if args.slow:
                    threading.Thread(target=slow_down,
                                     args=(processes[args.ranks - 1], over)).start()
            if "Optimization Done" in line:
                seconds = time.monotonic() - begin
                over.set()
    over.set()
    log = "".join(lines)
    if run.returncode:
        sys.exit(f"{name} ended with {run.returncode}:\n{log[-2000:]}")
    return seconds, log


def gradient_kib(folder):
    return next(folder.glob("s_iter_*.caffemodel")).stat().st_size / 1024


def report(args, name, solver, folder):
    seconds, log = train(args, name, solver)
    accuracy = 100 * float(ACCURACY.findall(log)[-1])
    found = SENT.search(log)
    if found:
        kib, mean, most = int(found.group(1)), found.group(2) or 0, found.group(3) or 0
    else:
        kib, mean, most = args.iterations * 2 * (args.ranks - 1) * gradient_kib(folder), 0, 0
    print(f"| {name} | {accuracy:.2f} | {seconds:.1f} | {kib / 1024:.0f} | {float(mean):.1f} | "
          f"{most} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--period", type=int, default=10)
    parser.add_argument("--probability", type=float, default=0.1)
    parser.add_argument("--digits", type=int, default=60000)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--only", default=",".join(NAMES))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([args.trainer, "dataset", "digits", folder / "digits",
                        f"--train={args.digits}", "--test=10000", "--minloglevel=1"], check=True)
        solver = make_solver(args, folder)
        print("| strategy | accuracy, % | seconds | MiB sent | staleness, mean | most |")
        print("|---|---|---|---|---|---|")
        for strategy in args.only.split(","):
            report(args, strategy, solver, folder)


if __name__ == "__main__":
    main()
