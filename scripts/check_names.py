#!/usr/bin/env python3
"""Fails on a file-local name that two sources of one module define, or that hides a type.

    scripts/check_names.py [root]

A unity build compiles several files as one unit, so their unnamed namespaces become one. Each new
file changes which files share a unit, so the names must be unique in the whole module.
"""

import collections
import pathlib
import re
import sys

from check_files import list_files
from cpp_text import DIRECTIVE, blank, without_comments_and_literals

TYPE = re.compile(r"(?:class|struct|union|enum(?: class)?) (\w+)(?: final)?(?: ?:(?!:).*)?$")
ALIAS = re.compile(r"using (\w+) ?=")
# The last word before "(", "=" or "{".
OTHER = re.compile(r"(?:^|[\s*&>])([A-Za-z]\w+) ?(?:\[.*)?$")
SKIPPED = re.compile(r"(TEST|INSTANTIATE_|TYPED_TEST|static_assert|namespace|using|template <>"
                     r"|BENCHMARK|catch|void PrintTo)")
# Folders of tests that no unity build joins.
APART = re.compile(r"tests/(support/emulated_gpu|tools/(faulty_io|emulated)|cuda/fake_nvml|fuzz"
                   r"|bench)/")


def declarations(text, opening=r"\bnamespace\s*\{"):
    """The declarations directly in the namespaces that open so, each without its body."""
    code = DIRECTIVE.sub(blank, without_comments_and_literals(text))
    code = re.sub(r"\[\[.*?\]\]|__\w+__\s*\(+\w+\)+|alignas\([^()]*(\([^()]*\))?\)", " ", code)
    code = re.sub(r"(?<=\w)\{\w*\}", "", code)  # An initializer of a number.
    for match in re.finditer(opening, code):
        depth, head = 0, ""
        for mark in re.finditer(r"[{};]|[^{};]+", code[match.end():]):
            token = mark.group(0)
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if depth < 0:
                    break
            if depth == 0 and token in "};" or depth == 1 and token == "{":
                yield " ".join(head.split())
                head = ""
            elif depth == 0:
                head += token


def name_of(declaration):
    """Returns the name that a declaration declares, or None."""
    text = re.sub(r"^template <(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*> ?", "", declaration)
    if not text or SKIPPED.match(text) and not ALIAS.match(text):
        return None
    for form in (TYPE, ALIAS):
        if form.match(text):
            return form.match(text).group(1)
    found = OTHER.search(re.split(r"[(=]", text)[0].strip())
    return found.group(1) if found else None


def module_of(file):
    parts = file.parts
    return "/".join(parts[:1] if parts[0] == "tools" else parts[:2])


def header_types(root, files):
    """{(module, type): header} of the types that a module's own headers define."""
    types = {}
    for file in files:
        name = file.relative_to(root)
        if file.suffix != ".h" or name.parts[0] not in ("src", "tools"):
            continue
        for declaration in declarations(file.read_text(), r"\bnamespace trainer\s*\{"):
            if TYPE.match(declaration) or ALIAS.match(declaration):
                types[module_of(name), name_of(declaration)] = str(name)
    return types


def check(root):
    defined, count = collections.defaultdict(dict), 0
    files = list(list_files(root))
    types, hidden = header_types(root, files), []
    for file in files:
        name = file.relative_to(root)
        where = name.parts[0] in ("src", "tools", "tests") and not APART.match(str(name))
        if file.suffix != ".cc" or not where:
            continue
        count += 1
        for local in filter(None, map(name_of, declarations(file.read_text()))):
            defined[module_of(name), local][str(name)] = True
            header = types.get((module_of(name), local))
            if header:
                hidden.append(f"{name}:1: '{local}' is file-local here and a type of {header}, "
                              "which another file of a unit may include; name it differently")
    return hidden + [f"{second}:1: '{local}' is file-local here and in {first}; name them differently"
            for (_, local), (first, *others) in sorted(defined.items()) for second in others], count


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    problems, count = check(pathlib.Path(root).resolve())
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"names: {count} files, {len(problems)} names twice in a module")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
