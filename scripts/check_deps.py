#!/usr/bin/env python3
"""Fails on an include that violates the dependencies in CMakeLists.txt.

    scripts/check_deps.py [root]

src/<name> and include/trainer/<name> may include only the modules in `trainer_module(<name> DEPS
<modules> ...)`. A header in src/ is private to its module, and no file may include tests/. Only
modules marked KERNELS may include device code, the header backend/loops/map.h, even indirectly, because
nvcc does not compile other modules or tools/.
"""

import pathlib
import re
import sys

from check_files import list_files

KEYWORDS = {"DEPS", "LIBS", "KERNELS", "COLD"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
DEVICE_CODE = "include/trainer/backend/loops/map.h"
SOURCES = {".cc", ".h", ".cu", ".cuh"}


def read_modules(cmake_text):
    """Returns {module: its DEPS} and {module: line}, ignoring comments."""
    text = re.sub(r"#[^\n]*", "", cmake_text)
    deps, lines = {}, {}
    for match in re.finditer(r"\btrainer_module\(([^)]*)\)", text):
        name, *words = match.group(1).split()
        lines[name] = text.count("\n", 0, match.start()) + 1
        deps[name], into = [], None
        for word in words:
            if word in KEYWORDS:
                into = deps[name] if word == "DEPS" else []
            elif into is not None:
                into.append(word)
    return deps, lines


def kernel_modules(cmake_text):
    """Returns the modules marked KERNELS."""
    text = re.sub(r"#[^\n]*", "", cmake_text)
    return {match.group(1).split()[0] for match in re.finditer(r"\btrainer_module\(([^)]*)\)", text)
            if "KERNELS" in match.group(1).split()}


def way_to_device_code(root, file, known):
    """Returns the chain of headers from a file to DEVICE_CODE, which is the last one, or None.
    `known` caches the results for headers."""
    module = module_of(file.relative_to(root).parts)
    for match in map(INCLUDE.match, file.read_text().splitlines()):
        if not match or match.group(1) != '"':
            continue
        for folder in (file.parent, root / "include", root / "src" / (module or "")):
            header = folder / match.group(2)
            if not header.is_file():
                continue
            name = header.resolve().relative_to(root).as_posix()
            if name == DEVICE_CODE:
                return [name]
            if name not in known:
                known[name] = None  # ends the recursion if headers include each other
                known[name] = way_to_device_code(root, header, known)
            if known[name]:
                return [name, *known[name]]
    return None


def find_cycle(deps):
    """Returns a list of modules that leads back to its start, or None."""
    done = set()

    def visit(name, path):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        for dep in deps.get(name, []):
            cycle = visit(dep, path + [name])
            if cycle:
                return cycle
        done.add(name)
        return None

    return next(filter(None, (visit(name, []) for name in deps)), None)


def module_of(parts):
    """Returns the module of a file, from the parts of its path below the root, or None."""
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "trainer") and len(parts) > 3:
        return parts[2]
    return None


def owner_of_private(root, file, target, deps):
    """Returns the module whose src/ folder has the header that `file` includes, or None."""
    beside = (file.parent / target).resolve()
    for module in deps:
        folder = (root / "src" / module).resolve()
        if beside.is_file() and folder in beside.parents:
            return module
        if (folder / target).is_file() and not beside.is_file():
            return module
    return None


def check_include(root, file, quote, target, deps):
    """Returns the error of this include, or None."""
    parts = file.relative_to(root).parts
    module = module_of(parts)
    if parts[0] not in ("src", "include", "tools"):
        return None
    allowed = [module, *deps.get(module, [])] if module else list(deps)
    if target.startswith("trainer/"):
        other = target.split("/")[1]
        if other not in allowed:
            known = "may not use" if other in deps else "names no module by"
            return f"{module or parts[0]} {known} '{other}' (allowed: {', '.join(allowed)})"
        return None
    if re.match(r"(\.\./)*tests/", target):
        return "nothing includes tests/"
    if target.endswith(".pb.h") and "google/" not in target and "config" not in allowed:
        return f"{module} may not use generated protobuf code: it does not depend on config"
    owner = owner_of_private(root, file, target, deps) if quote == '"' else None
    if owner and owner != module:
        return f"'{target}' is a private header of module '{owner}'"
    if owner and parts[0] == "include":
        return f"a public header includes '{target}', a private one of its module"
    return None


def check(root):
    root = pathlib.Path(root).resolve()
    cmake = root / "CMakeLists.txt"
    deps, lines = read_modules(cmake.read_text())
    kernels, known = kernel_modules(cmake.read_text()), {}
    problems = []
    for name, used in deps.items():
        problems += [f"{cmake.name}:{lines[name]}: module '{name}' depends on unknown '{dep}'"
                     for dep in used if dep not in deps]
    cycle = find_cycle(deps)
    if cycle:
        problems.append(f"{cmake.name}:{lines[cycle[0]]}: cycle: {' -> '.join(cycle)}")
    count = 0
    for file in list_files(root):
        if file.suffix not in SOURCES:
            continue
        name = file.relative_to(root)
        if module_of(name.parts) not in (None, *deps):
            problems.append(f"{name}:1: folder of no module in {cmake.name}")
            continue
        count += 1
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            wrong = match and check_include(root, file, *match.groups(), deps)
            if wrong:
                problems.append(f"{name}:{number}: {wrong}")
        host = name.parts[0] == "tools" or name.parts[0] == "src" and name.parts[1] not in kernels
        way = way_to_device_code(root, file, known) if host and file.suffix == ".cc" else None
        if way:
            problems.append(f"{name}:1: includes device code, but its module is not marked KERNELS: "
                            + " -> ".join(way))
    return problems, f"deps: {count} files of {len(deps)} modules"


def main():
    problems, summary = check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{summary}: {len(problems)} problems" if problems else f"{summary} keep the directions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
