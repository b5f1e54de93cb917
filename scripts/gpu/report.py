"""Collects the results of check.py's steps: one row per step, on the screen and in two files.
results.json has all of each note; the screen and summary.txt say how much they leave out.
"""

import dataclasses
import json
import os
import platform
import re

NAMES = {True: "met", False: "MISSED", None: ""}


@dataclasses.dataclass
class Figure:
    """A measured figure, and its target if there is one."""
    name: str
    value: float
    unit: str
    least: float = None
    most: float = None

    @property
    def met(self):
        """Whether the figure meets its target; None without a target."""
        if self.least is None and self.most is None:
            return None
        return ((self.least is None or self.value >= self.least) and
                (self.most is None or self.value <= self.most))

    def line(self):
        bound = (f" (at least {self.least:g})" if self.least is not None else
                 f" (at most {self.most:g})" if self.most is not None else "")
        return f"{self.name}: {self.value:.4g} {self.unit}{bound} {NAMES[self.met]}".rstrip()


class Result:
    """A step's result. Reports each change at once, so a killed run keeps its results so far."""

    def __init__(self, changed=lambda: None):
        self.passed = self.failed = self.skipped = 0
        self.whole = True  # the whole step was done
        self.notes, self.figures, self.details = [], [], {}
        self._changed = changed

    def check(self, good, text):
        if good:
            self.passed += 1
            self._changed()
        else:
            self.fail(text)

    def count(self, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        self._changed()

    def fail(self, text):
        self.failed += 1
        self.note(text)

    def cut(self, text):
        """Records that a part of the step was not done."""
        self.whole = False
        self.note(text)

    def note(self, text):
        self.notes.append(" ".join(text.split()))
        self._changed()

    def measure(self, name, value, unit, least=None, most=None):
        """Adds a figure. A figure that misses its bound is marked, but the step does not fail."""
        self.figures.append(Figure(name, value, unit, least, most))
        self._changed()

    def detail(self, key, value):
        """Adds a value to the JSON file only."""
        self.details[key] = value
        self._changed()

    def row(self, step, seconds, ended):
        figures = [{**dataclasses.asdict(figure), "met": figure.met} for figure in self.figures]
        return {"step": step, "ended": ended, "passed": self.passed, "failed": self.failed,
                "skipped": self.skipped, "whole": self.whole, "notes": self.notes,
                "figures": figures,
                "lines": [figure.line() for figure in self.figures],
                "details": self.details, "seconds": round(seconds, 1)}


def shortened(text, most):
    """Returns a text of at most `most` characters: if that is not all, its beginning and how many
    quoted names, such as layers, or else characters are left out."""
    if len(text) <= most:
        return text
    kept = text[:most - 24].rsplit(" ", 1)[0]
    rest = text[len(kept):]
    names = len(re.findall(r"'[^' ]+'", rest))
    return f"{kept} ... ({names} more)" if names else f"{kept} ... ({len(rest)} characters)"


def short_notes(row, count, most):
    """Returns the first `count` notes, shortened, and a line that says how many are left out."""
    notes = row.get("notes", ())
    lines = [shortened(note, most) for note in notes[:count]]
    left_out = len(notes) - len(lines)
    return [*lines, f"({left_out} more in results.json)"] if left_out else lines


def verdict(row):
    """Returns a line with the outcome of a step."""
    if "left_out" in row:
        return f"left out  {row['step']}: {row['left_out']}"
    word = ("FAILED" if row["failed"] else "under way" if not row["ended"] else
            "passed" if row["whole"] else "in part")
    counts = f"{row['passed']} passed, {row['failed']} failed"
    if row["skipped"]:
        counts += f", {row['skipped']} skipped"
    return f"{word:9} {row['step']}: {counts} ({row['seconds']:.0f} s)"


class Report:
    """Writes the rows to summary.txt, which fits one screen, and with details to results.json. Both
    files are complete at any time."""

    def __init__(self, folder, bundle, clock):
        self.folder, self.bundle, self.clock = folder, bundle, clock
        self.rows = []
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, row):
        """Adds a row. It replaces an earlier row of the same step."""
        self.rows = [other for other in self.rows if other["step"] != row["step"]] + [row]
        self.write()

    def totals(self):
        rows = self.rows
        totals = {key: sum(row.get(key, 0) for row in rows)
                  for key in ("passed", "failed", "skipped")}
        totals["left_out"] = sum("left_out" in row for row in rows)
        met = [figure["met"] for row in rows for figure in row.get("figures", ())]
        return {**totals, "met": met.count(True), "missed": met.count(False)}

    def closing_line(self):
        totals = self.totals()
        return (f"{totals['passed']} passed, {totals['failed']} failed; "
                f"{totals['met']} figures met, {totals['missed']} missed; "
                f"{totals['left_out']} steps left out; {self.clock():.0f} s")

    def summary(self):
        lines = [", ".join(gpu["name"] for gpu in self.bundle.gpus) or "no GPU"]
        for row in self.rows:
            lines.append(verdict(row))
            lines += [f"          {line}" for line in row.get("lines", ())]
            if row.get("failed") or not row.get("whole", True):
                lines += [f"          {note}" for note in short_notes(row, 2, 69)]
        return "\n".join([*lines, self.closing_line()]) + "\n"

    def write(self):
        """Writes both files. Returns the text of summary.txt."""
        whole = {"machine": platform.node(), "gpus": self.bundle.gpus, "cores": os.cpu_count(),
                 "cuda": self.bundle.query.get("cuda"), "seconds": round(self.clock(), 1),
                 **self.totals(), "steps": self.rows}
        self.put("results.json", json.dumps(whole, indent=1) + "\n")
        summary = self.summary()
        self.put("summary.txt", summary)
        return summary

    def put(self, name, text):
        unfinished = self.folder / (name + ".part")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self.folder / name)
