#!/usr/bin/env python3
"""Checks that a layer type needs one source file: it is registered once, and the modules that run
nets name no layer type. `check_layers.py [TREE]` prints each fault and how many types there are.
"""

import pathlib
import re
import sys

REGISTRATION = re.compile(r'Register\w*Layer<[^;]*?>\s+k\w+\(\s*"(\w+)"')
# The modules that run nets. They know a layer only by its LayerDoc and its virtual functions.
ENGINE = ("net", "optim", "strategies", "solver")
# The net itself creates layers of the first two types; the other files implement their type.
KNOWN = {("net", "Split"), ("net", "Input"), ("net/io/learning.cc", "BatchNorm"),
         ("optim/contrastive_divergence.cc", "RBM")}


def registered(tree):
    """Returns {layer type: the files that register it}."""
    files = {}
    for source in sorted(tree.glob("src/layers/**/*.cc")):
        for match in REGISTRATION.finditer(source.read_text(encoding="utf-8")):
            files.setdefault(match[1], []).append(source.relative_to(tree))
    return files


def faults(tree):
    types = registered(tree)
    for name, files in types.items():
        if len(files) > 1:
            yield f"{files[1]}: layer type {name} is also registered in {files[0]}"
    for module in ENGINE:
        for source in sorted([*tree.glob(f"src/{module}/**/*"),
                              *tree.glob(f"include/trainer/{module}/**/*")]):
            if source.suffix not in (".cc", ".h"):
                continue
            place = str(source.relative_to(tree))
            lines = source.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                for name in re.findall(r'"(\w+)"', line):
                    if name not in types or (module, name) in KNOWN:
                        continue
                    if (place.removeprefix("src/"), name) not in KNOWN:
                        yield (f"{place}:{number}: names the layer type {name}; let the layer say "
                               "what is special about it")


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(faults(tree))
    print("\n".join(found + [f"layers: {len(registered(tree))} types, {len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
