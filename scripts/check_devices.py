#!/usr/bin/env python3
"""Fails if code above the backend asks which device runs it, or if a verb makes a device.

    scripts/check_devices.py [root]

A layer or a rule defines what is computed, with functors for Map, MapRows, ForEach, ReduceSum and
similar functions, and with calls of a Device and its plans. A net, a step rule and the solver
define when. The backend decides how a device computes it. No file of these modules may therefore
ask for the kind of device, contain code for one device, or split a loop over threads. Code that
must differ on some devices asks for the property that is the reason, such as Device::IsAsync.

Verbs and the module run call MakeDevice of run/device.h, which chooses the device by the flags and
the solver.
"""

import pathlib
import re
import sys

from check_files import list_files
from cpp_text import without_comments_and_literals

MODULES = ("layers", "net", "optim", "solver")
FOLDERS = tuple(f"{root}/{name}/" for root in ("src", "include/trainer") for name in MODULES)
VERBS = ("tools/", "src/run/", "include/trainer/run/")
DEVICE_MAKER = "src/run/device.cc"
SOURCES = {".cc", ".h", ".cu", ".cuh"}
RULES = [
    (re.compile(r"\bDeviceKind\b|(\.|->)\s*kind\s*\(\s*\)"), "asks which device it runs on"),
    (re.compile(r"\b__CUDACC__\b|\b__CUDA_ARCH__\b|\bTRAINER_CUDA\b|<<<"),
     "holds code for one device"),
    (re.compile(r"\b(ParallelRanges|ParallelFor|StreamedRanges|StreamedFor|CpuRows|MinChunk)\b"
                r"|\bparallel_for_internal\b|\bomp_\w+\s*\(|#\s*pragma\s+omp\b|\bstd::j?thread\b"),
     "splits a loop over the CPU's threads"),
    (re.compile(r"\b_mm\d*_\w+|\bStreamCopy\b|\b__m\d+\w*\b"),
     "uses instructions of the CPU"),
]
VERB_RULES = [(re.compile(r"\bMake(Cpu|Cuda)Device\b"), "makes a device by itself")]
INCLUDES = re.compile(r'#\s*include\s*[<"](\w*intrin\.h|omp\.h|cuda\w*\.h|'
                      r'trainer/backend/loops/(parallel_for|cpu_loops|nontemporal)\.h)[>"]')

# {file: (the allowed exception, the reason)}
ALLOWED = {
    "src/layers/shared/filler.cc": (
        r"\bParallelRanges\b|parallel_for\.h",
        "fills an array of the host, which is then copied to the device"),
    "src/layers/activation/noise.cc": (
        r"\.kind\(\)",
        "a field of its message is called so"),
    "src/layers/detection/detection_output.cc": (
        r"\bParallel(Ranges|For)\b|parallel_for\.h",
        "sorts and compares boxes in arrays of the host; how many stay decides a shape"),
}


def check_devices(name, text):
    """[(line, message)] of one file."""
    allowed = re.compile(ALLOWED[name][0]) if name in ALLOWED else None
    code = without_comments_and_literals(text).split("\n")
    found = []
    verb = name.startswith(VERBS)
    for number, (line, plain) in enumerate(zip(text.split("\n"), code), 1):
        for pattern, message in VERB_RULES if verb else RULES:
            match = pattern.search(plain)
            if match and not (allowed and allowed.search(match.group(0))):
                found.append((number, f"{message}: {match.group(0).strip()}"))
        match = None if verb else INCLUDES.search(line)
        if match and not (allowed and allowed.search(match.group(1))):
            found.append((number, f"includes {match.group(1)}, which is for one device"))
    return found


def check(root):
    root = pathlib.Path(root).resolve()
    problems, count = [], 0
    for file in list_files(root):
        name = file.relative_to(root).as_posix()
        if not name.startswith(FOLDERS + VERBS) or file.suffix not in SOURCES:
            continue
        if name == DEVICE_MAKER:
            continue
        count += 1
        advice = ("call MakeDevice of run/device.h" if name.startswith(VERBS) else
                  "say what is computed and let the backend choose how, or ask the device for the "
                  "property that matters")
        problems += [f"{name}:{line}: {message}; {advice}"
                     for line, message in check_devices(name, file.read_text())]
    return problems, count


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    problems, count = check(root)
    for line in problems:
        print(line)
    print(f"devices: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
