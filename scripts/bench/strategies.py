#!/usr/bin/env python3
"""Trains LeNet with each strategy on several ranks: accuracy, time, bytes sent and staleness.

    strategies.py [--trainer=build/release/trainer] [--ranks=4] [--iterations=1000] [--rate=0.01]
                  [--period=10] [--probability=0.1] [--digits=60000] [--only=local,easgd]
                  [--mnist=FOLDER] [--slow] [--kills=20]

Each run trains on iterations * 64 drawn digits, all ranks together, and tests on 10,000 others.
With --mnist both are MNIST's digits, from a folder with its four files. The bytes are what all
ranks send; for synchronous ranks they are computed for a ring. With --slow the last rank runs half
of the time: it alternates 20 ms stopped and 20 ms running. With --kills each strategy trains that
many more times, and a rank other than 0 is killed at a random time of each run. The table then has
the exit codes, the lowest accuracy of the runs that continued, and the last message of the others.

The pipeline's stages are chosen by cost, and its batch is as large as the batches of all ranks
together. All strategies use the same settings except the parameter server: its stale gradients act
like more momentum and would diverge with the others' 0.9. It runs without momentum, at a learning
rate at which each record moves the weights as far as in the other strategies.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("synchronous", "local", "easgd", "gossip", "parameter_server", "pipeline",
         "central_storage")
TURN = 0.02  # seconds: a slow rank is stopped this long, then runs this long
BATCH = 64
KILLED = re.compile(r"error: (rank \d+ .* was ended by signal 9 .*)")
RANK = re.compile(r"rank (\d+) \([^,]+, process (\d+)\)")
ACCURACY = re.compile(r"Test net output #\d+: accuracy = ([\d.]+)")
SENT = re.compile(r"Strategy \w+: .*?(\d+) KiB sent(?:; staleness ([\d.e+-]+) .*?, (\d+) at most)?")


def make_digits(args, folder):
    if args.mnist is None:
        subprocess.run([args.trainer, "dataset", "digits", folder, f"--train={args.digits}",
                        "--test=10000", "--minloglevel=1"], check=True)
        return
    folder.mkdir()
    for part, name in (("train", "train"), ("t10k", "test")):
        files = [next(args.mnist.glob(f"{part}-{what}*")) for what in ("images", "labels")]
        subprocess.run([args.trainer, "dataset", "idx", *files, folder / f"{name}_lmdb",
                        "--minloglevel=1"], check=True)


def make_solver(args, folder):
    net = (ROOT / "models/lenet/train_test.prototxt").read_text()
    net = net.replace("data/digits/", f"{folder}/digits/")
    for name, batch in (("net", BATCH // args.ranks), ("whole", BATCH)):
        (folder / f"{name}.prototxt").write_text(net.replace("batch_size: 64",
                                                             f"batch_size: {batch}"))
    (folder / "solver.prototxt").write_text(
        f'net: "{folder}/net.prototxt"\nbase_lr: {args.rate}\nmomentum: 0.9\n'
        'weight_decay: 0.0005\nlr_policy: "inv" gamma: 0.0001 power: 0.75\nrandom_seed: 1\n'
        f'max_iter: {args.iterations}\ntest_iter: 100\ntest_interval: {args.iterations}\n'
        f'test_initialization: false\nsnapshot_prefix: "{folder}/s"\n')
    return folder / "solver.prototxt"


def send(process, sign):
    """Returns whether the process existed."""
    try:
        os.kill(process, sign)
    except ProcessLookupError:
        return False
    return True


def slow_down(process, over):
    """Stops a process for half of the time."""
    while not over.is_set() and send(process, signal.SIGSTOP):
        time.sleep(TURN)
        send(process, signal.SIGCONT)
        time.sleep(TURN)


def kill_later(process, seconds, over):
    if not over.wait(seconds):
        send(process, signal.SIGKILL)


def train(args, name, solver, kill_at=None):
    """Returns the exit code, seconds from the first iteration to the last test, and the log."""
    command = [args.trainer, "train", f"--solver={solver}", f"--ranks={args.ranks}",
               f"--strategy={name}", f"--set=strategy_param.period={args.period}",
               f"--set=strategy_param.probability={args.probability}", *settings(args, name)]
    over, lines, processes = threading.Event(), [], {}
    begin = end = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}) as run:
        for line in run.stderr:
            lines.append(line)
            if found := RANK.search(line):
                processes[int(found.group(1))] = int(found.group(2))
            if "Starting Optimization" in line:
                begin = time.monotonic()
                if args.slow:
                    threading.Thread(target=slow_down,
                                     args=(processes[args.ranks - 1], over)).start()
                if kill_at is not None:
                    victim = processes[random.randrange(1, args.ranks)]
                    threading.Thread(target=kill_later, args=(victim, kill_at, over)).start()
            if f"Iteration {args.iterations}, Testing net" in line:
                end = time.monotonic()
                over.set()
    over.set()
    return run.returncode, end - begin, "".join(lines)


def settings(args, name):
    if name == "pipeline":  # its ranks share one batch
        return ["--pipeline_stages=auto", f"--set=net='{args.folder}/whole.prototxt'"]
    if name != "parameter_server":
        return []
    return ["--set=momentum=0", f"--set=base_lr={args.rate * 10 / args.ranks}"]


def accuracy_of(log):
    return 100 * float(ACCURACY.findall(log)[-1])


def measure(args, name, solver, folder):
    """Prints a row of the table and returns the seconds of the run."""
    code, seconds, log = train(args, name, solver)
    if code:
        sys.exit(f"{name} ended with {code}:\n{log[-2000:]}")
    found = SENT.search(log)
    if found:
        kib, mean, most = int(found.group(1)), found.group(2) or 0, found.group(3) or 0
    else:
        gradients = next(folder.glob("s_iter_*.caffemodel")).stat().st_size / 1024
        kib, mean, most = args.iterations * 2 * (args.ranks - 1) * gradients, 0, 0
    print(f"| {name} | {accuracy_of(log):.2f} | {seconds:.1f} | {kib / 1024:.0f} | "
          f"{float(mean):.1f} | {most} |", flush=True)
    return seconds


def kill_many(args, name, solver, seconds):
    """Prints a row: how the runs with a killed rank ended."""
    codes, accuracies, said = collections.Counter(), [], ""
    for _ in range(args.kills):
        code, _, log = train(args, name, solver, kill_at=random.uniform(0.02, 0.95) * seconds)
        codes[code] += 1
        if code == 0:
            accuracies.append(accuracy_of(log))
        elif found := KILLED.search(log):
            said = found.group(1)
    ends = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    least = f"{min(accuracies):.2f}" if accuracies else ""
    print(f"| {name} | {ends} | {least} | {said} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--period", type=int, default=10)
    parser.add_argument("--probability", type=float, default=0.1)
    parser.add_argument("--digits", type=int, default=60000)
    parser.add_argument("--mnist", type=pathlib.Path)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--only", default=",".join(NAMES))
    args = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_digits(args, folder / "digits")
        args.folder = folder
        solver = make_solver(args, folder)
        print("| strategy | accuracy, % | seconds | MiB sent | staleness, mean | most |")
        print("|---|---|---|---|---|---|")
        names = args.only.split(",")
        seconds = {name: measure(args, name, solver, folder) for name in names}
        if args.kills:
            print("\n| strategy | runs with a killed rank ended | least accuracy, % | said |")
            print("|---|---|---|---|")
            for name in names:
                kill_many(args, name, solver, seconds[name])


if __name__ == "__main__":
    main()
