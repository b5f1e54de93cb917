#!/usr/bin/env python3
"""Fails on text that must not be in the tree.

    scripts/check_text.py [root]

Everywhere: notes of unfinished work, trailing blanks, carriage returns, a missing final newline,
the path of a home folder. In code: tabs. In src/, include/ and tools/: calls that end the process,
shared ownership. In headers: using namespace. In Markdown: a block that begins with ```cpp and the
path of a file, and differs from that file.
"""

import pathlib
import re
import sys

from check_files import list_files
from cpp_text import without_comments_and_literals

CPP = {".cc", ".h", ".cu", ".cuh"}
CODE = CPP | {".py", ".sh", ".cmake", ".proto", ".prototxt"}
DATA = {".png", ".jpg", ".jpeg", ".ppm", ".pgm",
        ".gz", ".mdb", ".ldb", ".caffemodel", ".solverstate", ".bin", ".h5", ".npy", ".npz", ".csv"}

# Put together here so that this file passes its own check.
NOTES = re.compile(r"\b(" + "|".join(a + b for a, b in (
    ("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("HA", "CK"))) + r")\b")
FOLDERS = re.compile(r"(?<![\w.$}~-])/(" + "|".join(("ho" "me", "wo" "rk", "ro" "ot", "Us" "ers")) +
                     r")/\w")
ANYWHERE = [
    (NOTES, "a note of unfinished work"),
    (FOLDERS, "the path of somebody's folder"),
    (re.compile(r"[ \t]+$"), "trailing blanks"),
    (re.compile(r"\r"), "a carriage return"),
]
PRODUCT = [
    (re.compile(r"(?<![\w:])(std::)?(assert|abort|exit|quick_exit)\s*\("),
     "ends the process: throw trainer::Error"),
    (re.compile(r"\bD?CHECK(_[A-Z]+)?\s*\(|\bLOG\(FATAL\)|\bLOG\(DFATAL\)"),
     "ends the process: throw trainer::Error"),
    (re.compile(r"\bshared_ptr\b|\bmake_shared\b"), "shared ownership: one owner and references"),
]
HEADERS = [(re.compile(r"^\s*using namespace\b"), "using namespace in a header")]


def find(rules, lines):
    return [(number, message) for number, line in enumerate(lines, 1)
            for pattern, message in rules if pattern.search(line)]


def check_text(name, text):
    """[(line, message)] of one file."""
    path = pathlib.PurePosixPath(name)
    lines = text.split("\n")
    found = find(ANYWHERE, lines)
    if text and not text.endswith("\n"):
        found.append((len(lines), "no newline at the end"))
    if path.suffix in CODE:
        found += find([(re.compile(r"\t"), "a tab")], lines)
    if path.suffix in CPP:
        code = without_comments_and_literals(text).split("\n")
        if path.parts[0] in ("src", "include", "tools"):
            found += find(PRODUCT, code)
        if path.suffix == ".h":
            found += find(HEADERS, code)
    return found


BLOCK = re.compile(r"^```cpp (\S+)\n(.*?)^```$", re.M | re.S)


def check_blocks(root, text):
    """[(line, message)] of the files that a page shows."""
    return [(text.count("\n", 0, block.start()) + 1, f"differs from {block[1]}")
            for block in BLOCK.finditer(text)
            if not (root / block[1]).is_file() or (root / block[1]).read_text() != block[2]]


def check(root):
    root = pathlib.Path(root).resolve()
    problems, count = [], 0
    for file in list_files(root):
        if file.suffix in DATA:
            continue
        name = file.relative_to(root).as_posix()
        try:
            text = file.read_bytes().decode()
        except UnicodeDecodeError:
            problems.append(f"{name}:1: not UTF-8")
            continue
        count += 1
        found = check_text(name, text) + (check_blocks(root, text) if file.suffix == ".md" else [])
        problems += [f"{name}:{line}: {message}" for line, message in found]
    return problems, count


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    problems, count = check(root)
    for line in problems:
        print(line)
    print(f"text: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
