#!/usr/bin/env python3
"""Fails on files over 500 lines and functions over 60; warns on files over 300.

    scripts/check_size.py [root]

Files in proto/ have no limit, because the formats determine their length.
"""

import ast
import pathlib
import sys

from check_files import list_files
from cpp_text import functions

FILE_LIMIT, FILE_AIM, FUNCTION_LIMIT = 500, 300, 60
CPP = {".cc", ".h", ".cu", ".cuh"}
OTHER = {".py", ".sh", ".cmake"}


def python_functions(text):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(node.lineno, node.end_lineno, node.name)
            for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]


def check_file(name, text):
    """(problems, warnings) of one file."""
    length = text.count("\n")
    problems, warnings = [], []
    if length > FILE_LIMIT:
        problems.append(f"{name}:{FILE_LIMIT + 1}: {length} lines; the limit is {FILE_LIMIT}")
    elif length > FILE_AIM:
        warnings.append(f"{name}: warning: {length} lines; the aim is {FILE_AIM}")
    suffix = pathlib.Path(name).suffix
    found = functions(text) if suffix in CPP else python_functions(text) if suffix == ".py" else []
    for first, last, function in found:
        if last - first + 1 > FUNCTION_LIMIT:
            problems.append(f"{name}:{first}: function {function} has {last - first + 1} lines; "
                            f"the limit is {FUNCTION_LIMIT}")
    return problems, warnings


def check(root):
    root = pathlib.Path(root).resolve()
    problems, warnings, count = [], [], 0
    for file in list_files(root):
        if file.suffix not in CPP | OTHER and file.name != "CMakeLists.txt":
            continue
        count += 1
        more_problems, more_warnings = check_file(str(file.relative_to(root)), file.read_text())
        problems += more_problems
        warnings += more_warnings
    return problems, warnings, count


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    problems, warnings, count = check(root)
    for line in warnings + problems:
        print(line)
    print(f"size: {count} files, {len(problems)} over a limit, {len(warnings)} over the aim")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
