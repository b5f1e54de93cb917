#!/usr/bin/env python3
"""Fails on a definition that is not in a source named like its header.

    scripts/check_homes.py [root]

What x.h declares is defined in x.cc or x_*.cc of the same module.
"""

import collections
import pathlib
import re
import sys

from check_files import list_files
from check_names import TYPE, declarations, module_of, name_of

NAMESPACE = r"\bnamespace trainer\s*\{"
FUNCTION = re.compile(r"([\w~]+(?:<\w+>)?(?:::[\w~]+)*) ?\(")


def module_name(name):
    """Returns "net" for src/net/a.cc and for include/trainer/net/a.h."""
    parts = name.parts
    return parts[2] if parts[0] == "include" else module_of(name).removeprefix("src/")


def is_home(source, header):
    return source.stem == header.stem or source.stem.startswith(header.stem + "_")


def declared(root, files):
    """Returns {(module, name of a type or function): the headers that declare it}."""
    found = collections.defaultdict(set)
    for file in files:
        name = file.relative_to(root)
        if file.suffix != ".h" or name.parts[0] not in ("include", "src", "tools"):
            continue
        for declaration in declarations(file.read_text(), NAMESPACE):
            is_function = "(" in declaration and not declaration.startswith("using")
            if TYPE.match(declaration) or is_function:
                found[module_name(name), name_of(declaration)].add(name)
    return found


def misplaced(root):
    """Returns {source: {header: its first misplaced definition}} and the number of sources."""
    files = list(list_files(root))
    headers, found, count = declared(root, files), {}, 0
    for file in files:
        name = file.relative_to(root)
        if file.suffix != ".cc" or name.parts[0] not in ("src", "tools"):
            continue
        count += 1
        for definition in declarations(file.read_text(), NAMESPACE):
            function = FUNCTION.search(definition)
            if TYPE.match(definition) or not function:
                continue
            owner = function.group(1).split("::")[0]
            homes = headers.get((module_name(name), owner), ())
            if homes and not any(is_home(name, home) for home in homes):
                found.setdefault(str(name), {}).setdefault(str(min(homes)), function.group(1))
    return found, count


def check(root):
    found, count = misplaced(root)
    problems = [
        f"{source}:1: {definition} is declared in {header}; define it in "
        f"{pathlib.Path(header).stem}.cc or {pathlib.Path(header).stem}_*.cc"
        for source, homes in sorted(found.items()) for header, definition in sorted(homes.items())]
    return problems, count


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    problems, count = check(root.resolve())
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"homes: {count} sources, {len(problems)} define what another header declares")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
