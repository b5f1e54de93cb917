#!/usr/bin/env python3
"""Checks instruction counts of kernels that should be memory-bound in nvcc's machine code. Fails if
a count is out of its bound, or if nvcc warns.

    scripts/gpu/machine_code.py --proto=build/ci/proto [--arch=80,90a] [--all] [FILE...]

Compiles the device code of the files of BOUNDS, or of FILE, for the named architectures. --all
prints the counts of every kernel. Needs nvcc and cuobjdump of the CUDA toolkit, but no GPU; without
them exits with code 77.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sass
from machine_code_bounds import BOUNDS

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
FLAGS = ["-DTRAINER_CUDA=1", "-DGFLAGS_IS_A_DLL=0", "-DGLOG_CUSTOM_PREFIX_SUPPORT", "-O3",
         "-DNDEBUG", "--extended-lambda", "--expt-relaxed-constexpr", "-std=c++20", "-x", "cu",
         "-cubin",
         "-Xcompiler=-fno-math-errno,-fno-trapping-math"]
USAGE = re.compile(r"Function (\S+):\s+REG:(\d+)")


def kernels_of(text, usage):
    """Returns {mangled name: Counts} from the output of cuobjdump -sass and -res-usage. Exits if
    the latter does not name the registers of each kernel."""
    found = {name: sass.count(code) for name, code in sass.functions(text).items()}
    for name, registers in USAGE.findall(usage):
        if name in found:
            found[name].registers = int(registers)
    unknown = [name for name, counts in found.items() if counts.registers is None]
    if unknown:
        sys.exit(f"machine code: the registers of {unknown[0]} are unknown; cuobjdump -res-usage "
                 f"begins with:\n{usage[:500]}")
    return found


def broken(bound, counts):
    """Returns a text for each part of a bound that does not hold."""
    limits = (("loads before the first store", counts.loads >= bound.least_loads,
               f"at least {bound.least_loads}", counts.loads),
              ("divisions", counts.divisions <= bound.most_divisions,
               f"at most {bound.most_divisions}", counts.divisions),
              ("instructions", counts.instructions <= bound.most_instructions,
               f"at most {bound.most_instructions}", counts.instructions),
              ("registers", counts.registers <= bound.most_registers,
               f"at most {bound.most_registers}", counts.registers),
              ("accesses to local memory", counts.local <= bound.most_local,
               f"at most {bound.most_local}", counts.local),
              ("divisions in an inner loop",
               counts.inner_divisions <= bound.most_inner_divisions,
               f"at most {bound.most_inner_divisions}", counts.inner_divisions),
              ("loads that overlap", counts.overlap >= bound.least_overlap,
               f"at least {bound.least_overlap}", counts.overlap),
              *((f"accesses of {width} bytes in the main loop",
                 counts.wide.get(width, 0) >= least, f"at least {least}",
                 counts.wide.get(width, 0)) for width, least in bound.least_wide.items()),
              ("roundings of two numbers in the main loop", counts.packed >= bound.least_packed,
               f"at least {bound.least_packed}", counts.packed))
    return [f"{value} {what}, not {limit}" for what, holds, limit, value in limits if not holds]


def readable(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True)
    return [name.replace("(anonymous namespace)::", "") for name in done.stdout.splitlines()]


def compiled(nvcc, cuobjdump, file, arch, proto):
    """Returns {readable name: Counts} of a file's kernels, and nvcc's warnings."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = f"{folder}/code.cubin"
        done = subprocess.run(
            [nvcc, *FLAGS, f"-arch=sm_{arch}", f"-I{ROOT}/include",
             f"-I{ROOT}/src/{file.split('/')[1]}", f"-isystem={proto}",
             "-isystem=/usr/include/hdf5/serial", ROOT / file, "-o", cubin],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        text, usage = (subprocess.run([cuobjdump, flag, cubin], capture_output=True, text=True,
                                      check=True).stdout for flag in ("-sass", "-res-usage"))
    found = kernels_of(text, re.sub(r":\s*\n\s*", ": ", usage))
    return dict(zip(readable(found), found.values())), done.stderr.strip()


def tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--proto", required=True, help="the generated headers of a build")
    parser.add_argument("--arch", default="80,90a")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--cuobjdump", default=tool("cuobjdump"))
    parser.add_argument("files", nargs="*", default=sorted(BOUNDS))
    args = parser.parse_args()
    nvcc = tool("nvcc")
    if not nvcc or not args.cuobjdump:
        print("machine code: skipped, there is no nvcc or no cuobjdump")
        sys.exit(SKIPPED)
    faults = 0
    for file in args.files:
        for arch in args.arch.split(","):
            kernels, warnings = compiled(nvcc, args.cuobjdump, file, arch, args.proto)
            if warnings:
                faults += 1
                print(f"{file} {arch}: {warnings}")
            for name, counts in kernels.items() if args.all else ():
                print(f"{file} {arch}: {counts}: {name}")
            for bound in BOUNDS.get(file, ()):
                bounded = {name: c for name, c in kernels.items() if bound.names(name)}
                lines = [f"{name}: {line}" for name, c in bounded.items()
                         for line in broken(bound, c)] or \
                        ([] if bounded else [f"there is no kernel {bound.kernel}"])
                faults += len(lines)
                for line in lines:
                    print(f"{file} {arch}: {line}")
    print(f"machine code: {faults} bounds broken, or warnings")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
