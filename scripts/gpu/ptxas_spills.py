#!/usr/bin/env python3
"""Lists the kernels that spill registers or use a stack, as ptxas reports them. Fails if there is
one.

    scripts/gpu/ptxas_spills.py [--build=build/cuda] [--arch=80,90a] [--all] [FILE...]

Compiles each file with device code again for the named architectures. Without files it compiles the
files of src/backend/cuda. --all prints every kernel with its registers. Needs nvcc and a configured
CUDA build (cmake --preset cuda), but no GPU.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def command_for(entry, architectures):
    """The compilation of `entry` to nothing but a report."""
    words = [w for w in shlex.split(entry["command"]) if not w.startswith("--generate-code")]
    words[words.index("-o") + 1] = "/dev/null"
    for arch in architectures:
        words.append(f"--generate-code=arch=compute_{arch},code=[sm_{arch}]")
    return [w for w in words if "ccache" not in w] + ["-Xptxas", "-v"]


def kernels_of(report):
    """(name, architecture, stack, spilled, registers) of each kernel in ptxas's report."""
    found = []
    for line in report.splitlines():
        if match := KERNEL.search(line):
            found.append([match[1], match[2], 0, 0, 0])
        elif (match := FRAME.search(line)) and found:
            found[-1][2:4] = [int(match[1]), int(match[2]) + int(match[3])]
        elif (match := REGISTERS.search(line)) and found:
            found[-1][4] = int(match[1])
    return found


def readable(names):
    result = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True)
    return result.stdout.splitlines() if result.returncode == 0 else names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build/cuda"))
    parser.add_argument("--arch", default="80,90a")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    database = pathlib.Path(args.build) / "compile_commands.json"
    if not database.exists():
        sys.exit(f"{database} is not there; configure the build first: cmake --preset cuda")
    wanted = [str(pathlib.Path(f).resolve()) for f in args.files]
    bad = count = 0
    for entry in json.loads(database.read_text()):
        ours = entry["file"] in wanted if wanted else "/src/backend/cuda/" in entry["file"]
        if not ours or "-x cu" not in entry["command"]:
            continue
        done = subprocess.run(command_for(entry, args.arch.split(",")), cwd=entry["directory"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        kernels = kernels_of(done.stderr)
        for (_, arch, stack, spilled, registers), name in zip(
                kernels, readable([k[0] for k in kernels])):
            count += 1
            bad += spilled > 0
            if spilled or stack or args.all:
                print(f"{pathlib.Path(entry['file']).name} {arch}: {registers} registers, "
                      f"{stack} bytes of stack, {spilled} bytes spilled: {name}")
    print(f"{count} kernels, {bad} of them spill")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
