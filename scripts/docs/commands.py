#!/usr/bin/env python3
"""Brings docs/commands.md up to date with the program's help.

    scripts/docs/commands.py TRAINER            writes the page
    scripts/docs/commands.py TRAINER --check    exits with 1 if it would change the page

The groups, verbs, summaries and usage lines come from `trainer help`. The rest of a verb's section,
from its first ```sh block on, is written by hand and stays. A new verb gets the first example of
its help; `tests/tools/docs/docs_test.py TRAINER --write docs/commands.md` then adds the output.
"""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/commands.md"


def help_of(trainer, *verb):
    return subprocess.run([trainer, "help", *verb], check=True, text=True, capture_output=True).stdout


def paragraph(text, name):
    """Returns the lines from "name:" to the next empty line."""
    found = re.search(rf"^{name}:(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return [line.strip() for line in found.group(1).split("\n") if line.strip()] if found else []


def sentence(text):
    """Returns the summary of a verb with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def groups(trainer):
    """Returns [(group, [verb, ...]), ...]."""
    found = []
    for line in help_of(trainer).split("\n"):
        verb = re.match(r"  ([a-z][\w-]*) {2,}\S", line)
        if re.match(r"[a-z].*:$", line) and line != "examples:":
            found.append((line[:-1], []))
        elif verb and found:
            found[-1][1].append(verb.group(1))
    return found


def section(trainer, verb, old):
    text = help_of(trainer, verb)
    summary = text.split("\n", 1)[0].partition(": ")[2]
    usage = "\n".join("    " + line for line in paragraph(text, "usage"))
    by_hand = re.search(r"^```sh\n.*", old, re.M | re.S)
    if by_hand:
        example = by_hand.group(0).strip()
    else:
        example = "```sh\n" + paragraph(text, "examples")[0] + "\n```\n```text\n```"
    return f"### trainer {verb}\n\n{sentence(summary)}\n\n{usage}\n\n{example}\n"


def make(trainer, page):
    """Returns the page with the groups, summaries and usage lines of the program."""
    head, *sections = re.split(r"^(?=##+ )", page, flags=re.M)
    old = {part.split("\n", 1)[0]: part for part in sections}
    parts = [head.rstrip() + "\n"]
    for group, verbs in groups(trainer):
        parts.append(f"## {group[0].upper()}{group[1:]}\n")
        parts += [section(trainer, verb, old.get(f"### trainer {verb}", "")) for verb in verbs]
    return "\n".join(parts)


def main(arguments):
    page = PAGE.read_text()
    made = make(pathlib.Path(arguments[0]).resolve(), page)
    if arguments[1:] == ["--check"]:
        if made != page:
            print("docs/commands.md differs from the help: run scripts/docs/commands.py TRAINER")
        return int(made != page)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
