#!/usr/bin/env python3
"""Injects the faults of a cluster into real training runs and counts the results.

    inject.py --trainer=build/release/trainer [--only=dead,silent,slow,kills,disk]
              [--repeat=20] [--ranks=4] [--kills=1000]
              [--peer_warning=2] [--peer_timeout=4] [--mpirun] [--seed=1] [--keep]

dead     kill -9 of a random rank at a random moment: the run prints one message and exits with 82
silent   SIGSTOP of a rank: a warning names it after --peer_warning, and --peer_timeout ends the run
slow     a rank gets a tenth of the time: the log names it, and the run continues
kills    kill -9 of both ranks or of one, while every iteration writes a snapshot
disk     full, with a size limit, read-only, not writable, gone, slow: needs root

After each fault the run is resumed and must end with the weights of a run without faults, byte for
byte. Exits with code 1 if a check failed. --keep keeps the folder. Needs only Python.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import time

from job import Job, Wrong

from disk_faults import DISKS, DiskFaults
from kill_faults import Kills
from rank_faults import FAULTS, RankFaults

NAMES = [*FAULTS, "kills", "disk"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--only", default=",".join(NAMES), help=f"of {', '.join(NAMES)}")
    parser.add_argument("--repeat", type=int, default=20, help="dead, silent, slow: how often each")
    parser.add_argument("--ranks", type=int, default=4, help="dead, silent, slow: of how many")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--disks", default=",".join(DISKS), help=f"disk: of {', '.join(DISKS)}")
    parser.add_argument("--peer_warning", type=int, default=2)
    parser.add_argument("--peer_timeout", type=int, default=4)
    parser.add_argument("--mpirun", action="store_true", help="start ranks by mpirun, not --ranks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the runs")
    args = parser.parse_args()
    for name in args.only.split(","):
        if name not in NAMES:
            parser.error(f"no fault '{name}'; there are {', '.join(NAMES)}")
    for name in args.disks.split(","):
        if name not in DISKS:
            parser.error(f"no disk '{name}'; there are {', '.join(DISKS)}")
    return args


def attempt(title, trial, times):
    """Repeats a trial, prints how often it passed, and returns whether it always did."""
    good = 0
    begin = time.monotonic()
    for number in range(1, times + 1):
        try:
            trial()
            good += 1
        except Wrong as wrong:
            print(f"WRONG     {title}, number {number}: {wrong}", flush=True)
            for line in getattr(wrong, "lines", [])[-8:]:
                print(f"          | {line}", flush=True)
        if number % 100 == 0 and number < times:
            print(f"          {title}: {good} of {number} so far", flush=True)
    print(f"{'passed' if good == times else 'FAILED':9} {title}: {good} of {times} "
          f"({time.monotonic() - begin:.0f} s)", flush=True)
    return good == times


def run_ranks(job, args, names):
    good = True
    faults = RankFaults(job, args)
    for name in names:
        good &= attempt(f"{name} rank of {args.ranks}", lambda: faults.trial(name),
                        args.repeat)
        print(f"          {faults.summary()}", flush=True)
    return good


def run(job, args):
    only = args.only.split(",")
    good = True
    names = [name for name in FAULTS if name in only]
    if names:
        good &= run_ranks(job, args, names)
    if "kills" in only:
        job.clear()
        kills = Kills(job)
        good &= attempt("kills while every iteration writes a snapshot", kills.trial, args.kills)
        good &= attempt("weights after all kills", kills.compare, 1)
        print(f"          {kills.summary()}", flush=True)
    if "disk" in only:
        faults = DiskFaults(job)
        for name in args.disks.split(","):
            reason = faults.lacks(name)
            if reason:
                print(f"left out  disk {name}: {reason}", flush=True)
                continue
            good &= attempt(f"disk {name}", lambda: faults.trial(name), 1)
    return good


def main():
    args = parse()
    random.seed(args.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="trainer_faults."))
    try:
        good = run(Job(args.trainer, folder), args)
    finally:
        if args.keep:
            print(f"The runs are in {folder}.")
        else:
            shutil.rmtree(folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
