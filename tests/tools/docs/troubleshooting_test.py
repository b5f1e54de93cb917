"""Checks that the program has the messages that docs/troubleshooting.md quotes.

    troubleshooting_test.py

A quote is a line that begins with "error: " or "warning: "; <names> mark the parts that vary. Most
groups of three words of each other part must be in one string of the sources, so a message may lose
or gain a word without a change of the page.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
KEPT = 0.6  # minimum share of the groups that must be found
FEWEST_QUOTES = 25


def groups(text):
    """Returns all groups of three consecutive words; one smaller group for a shorter text."""
    words = re.findall(r"[\w.]+", text.lower())
    return {tuple(words[i:i + 3]) for i in range(max(1, len(words) - 2))} if words else set()


def strings():
    """Returns the groups of words of each string of the program."""
    found = []
    for folder in ("src", "tools", "include"):
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.suffix in (".cc", ".h"):
                for match in LITERALS.finditer(path.read_text()):
                    text = "".join(LITERAL.findall(match.group(0))).replace('\\"', '"')
                    if " " in text:
                        found.append(groups(text))
    return found


def quotes(page):
    for number, line in enumerate(page.split("\n"), 1):
        match = re.match(r"(?:error|warning): (.*)", line)
        if match:
            yield number, match.group(1)


def unknown_quotes(page, known):
    """Returns (number of quotes, failures)."""
    failures, count = [], 0
    for number, quote in quotes(page):
        count += 1
        parts = [groups(part) for part in re.split(r"<[^>]*>", quote)]
        parts = [part for part in parts if part and len(next(iter(part))) == 3]
        total = sum(len(part) for part in parts)
        hits = sum(max(len(part & text) for text in known) for part in parts)
        if total == 0 or hits < KEPT * total:
            failures.append(f"docs/troubleshooting.md:{number}: the program has no message like this "
                            f"({hits} of {total} groups of words): {quote}")
    return count, failures


def main():
    count, failures = unknown_quotes((ROOT / "docs/troubleshooting.md").read_text(), strings())
    print("\n".join([*failures, f"{count} messages"]))
    return 1 if failures or count < FEWEST_QUOTES else 0


if __name__ == "__main__":
    sys.exit(main())
