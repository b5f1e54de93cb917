#!/usr/bin/env python3
"""Checks instruction counts of kernels that should be memory-bound in nvcc's machine code. Fails if
a count is out of its bound, or if nvcc warns.

    scripts/gpu/machine_code.py --proto=build/ci/proto [--arch=80,90a] [--all] [FILE...]

Compiles the device code of the files of BOUNDS, or of FILE, for the named architectures. --all
prints the counts of every kernel. Needs nvcc, cuobjdump and nvdisasm of the CUDA toolkit, but no
GPU; without them exits with code 77.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sass
from machine_code_bounds import BACKEND_BOUNDS
from machine_code_layer_bounds import LAYER_BOUNDS

BOUNDS = BACKEND_BOUNDS | LAYER_BOUNDS
ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
TOOLS = ("nvcc", "cuobjdump", "nvdisasm")
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


def faults_of(kernels, bounds):
    """Returns a text for each bound of a file that its kernels break, and for each kernel without a
    bound that uses local memory."""
    lines = [f"{name}: {counts.local} accesses to local memory, and no bound allows them"
             for name, counts in kernels.items()
             if counts.local > 0 and not any(bound.names(name) for bound in bounds)]
    for bound in bounds:
        bounded = {name: counts for name, counts in kernels.items() if bound.names(name)}
        lines += [f"{name}: {line}" for name, counts in bounded.items()
                  for line in broken(bound, counts)]
        lines += [] if bounded else [f"there is no kernel {bound.kernel}"]
    return lines


def readable(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True)
    return [name.replace("(anonymous namespace)::", "") for name in done.stdout.splitlines()]


def compiled(file, arch, proto):
    """Returns {readable name: Counts} of a file's kernels, and nvcc's warnings."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = f"{folder}/code.cubin"
        done = subprocess.run(
            ["nvcc", *FLAGS, f"-arch=sm_{arch}", f"-I{ROOT}/include",
             f"-I{ROOT}/src/{file.split('/')[1]}", f"-isystem={proto}",
             "-isystem=/usr/include/hdf5/serial", ROOT / file, "-o", cubin],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        text, usage = (subprocess.run(["cuobjdump", flag, cubin], capture_output=True, text=True,
                                      check=True).stdout for flag in ("-sass", "-res-usage"))
    found = kernels_of(text, re.sub(r":\s*\n\s*", ": ", usage))
    return dict(zip(readable(found), found.values())), done.stderr.strip()


def add_tools_to_path():
    """Adds the usual folders of TOOLS to PATH: those beside nvcc, and those of pip's packages.
    cuobjdump looks for nvdisasm on PATH, too."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    packages = [folder for site in sys.path for folder in pathlib.Path(site).glob("nvidia/*/bin")]
    folders = (os.path.dirname(nvcc), os.path.dirname(os.path.realpath(nvcc)), *packages)
    os.environ["PATH"] = os.pathsep.join(map(str, (os.environ.get("PATH", ""), *folders)))


def exit_without_tools():
    missing = [name for name in TOOLS if not shutil.which(name)]
    if missing:
        print(f"machine code: skipped, there is no {' and no '.join(missing)}; install "
              f"{' and '.join(f'cuda-{name}' for name in missing)} of the CUDA toolkit; or, for "
              "cuobjdump and nvdisasm, pip's nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm")
        sys.exit(SKIPPED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--proto", required=True, help="the generated headers of a build")
    parser.add_argument("--arch", default="80,90a")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("files", nargs="*", default=sorted(BOUNDS))
    args = parser.parse_args()
    add_tools_to_path()
    exit_without_tools()
    faults = 0
    for file in args.files:
        for arch in args.arch.split(","):
            kernels, warnings = compiled(file, arch, args.proto)
            lines = [warnings] if warnings else []
            lines += [f"{counts}: {name}" for name, counts in kernels.items() if args.all]
            broken_bounds = faults_of(kernels, BOUNDS.get(file, ()))
            faults += bool(warnings) + len(broken_bounds)
            for line in lines + broken_bounds:
                print(f"{file} {arch}: {line}", flush=True)
    print(f"machine code: {faults} bounds broken, or warnings")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
