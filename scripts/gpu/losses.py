#!/usr/bin/env python3
"""Writes or compares the losses of the first iterations of five nets on generated data.

    losses.py --trainer=build/release/trainer --write=scripts/gpu/losses.txt
    losses.py --trainer=TRAINER --compare=losses.txt --flags=--gpu=0 [--nets=lenet]

The stored losses come from the CPU in f32. Another device rounds differently, and training
amplifies small differences: AVX2 instead of AVX-512 changes them by up to 0.7 %. The bounds are 0.2
% of the loss for ten iterations and 3 % after that. ResNet-50 has five times these bounds, because
its batch norms on noise amplify rounding. --loose=10 widens the bounds for 16 bits.
"""

import argparse
import pathlib
import sys
import tempfile

from generated import BATCHES, Data, Job

ITERATIONS = 50
FIRST = 10
BOUND_FIRST, BOUND_LAST = 2e-3, 3e-2
WIDER = {"resnet50": 5}


def read(path):
    """{net: losses} of a file of lines "net loss loss ..."."""
    stored = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, *numbers = line.split()
            stored[name] = [float(number) for number in numbers]
    return stored


def difference(name, found, stored, loose=1.0):
    """(whether they agree, a sentence)."""
    loose *= WIDER.get(name, 1)
    if len(found) != len(stored):
        return False, f"{len(found)} losses, not {len(stored)}"
    worst = 0.0
    for i, (ours, theirs) in enumerate(zip(found, stored)):
        off = abs(ours - theirs) / max(1.0, abs(theirs))
        bound = loose * (BOUND_FIRST if i < FIRST else BOUND_LAST)
        if not off <= bound:  # not a number, too
            return False, f"iteration {i}: {ours}, not {theirs} within {bound:g}"
        worst = max(worst, off)
    return True, f"within {worst:.1e}, {stored[0]} to {stored[-1]}"


def write(data, names, path):
    lines = ["# Losses of the CPU in f32, made by scripts/gpu/losses.py --write: one net per line."]
    stored = read(path) if pathlib.Path(path).exists() else {}
    for name in names:
        stored[name] = Job(data, name).losses(ITERATIONS, timeout=3600)
        print(f"{name}: {stored[name][0]} to {stored[name][-1]}", flush=True)
    lines += [" ".join([name, *map(str, stored[name])]) for name in BATCHES if name in stored]
    pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--nets", default=",".join(BATCHES), help="with commas between")
    parser.add_argument("--write", metavar="FILE", help="store the losses of this run")
    parser.add_argument("--compare", metavar="FILE", help="compare with stored ones")
    parser.add_argument("--flags", default="", help="more flags for trainer, with blanks between")
    parser.add_argument("--loose", type=float, default=1.0, help="factor on the bounds")
    args = parser.parse_args()
    trainer = pathlib.Path(args.trainer).resolve()
    names = args.nets.split(",")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        data = Data(trainer, folder)
        if args.write:
            write(data, names, args.write)
        stored = read(args.compare) if args.compare else {}
        for name in names if args.compare else ():
            found = Job(data, name).losses(len(stored[name]), args.flags.split(), 3600)
            good, text = difference(name, found, stored[name], args.loose)
            failed += not good
            print(f"{name}: {'agrees ' if good else ''}{text}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
