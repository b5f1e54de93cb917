"""Runs the Markdown pages as a reader does: saves their files, runs their commands, compares outputs.

    docs_test.py TRAINER PAGE...           runs pages, each in its own temporary folder
    docs_test.py TRAINER --write PAGE...   the same, and writes the new outputs into the pages
    docs_test.py TRAINER --flags           only looks up every verb and flag that a page names
    docs_test.py TRAINER --links           only follows every link between pages, with its anchor

In a page
- a block ```prototxt whose first line is "# name.prototxt" is a file to save under that name, any
  other one is part of a net or a solver, which must be read without an error;
- a block ```python is saved in the same way, and must compile;
- the blocks ```cpp and ```cmake are built by tests/tools/packages/embed_test.py;
- a block ```sh needs=MODULE runs only if Python has that module, else it is left out with the
  ```text block after it;
- a block ```sh is run by bash, which stops at the first command that fails;
- a block ```text is from the output of the ```sh block before it: each of its lines must be there,
  whatever the numbers; "..." means that lines are left out. --write fills an empty block with the
  whole output. In any other block it replaces each line by the output's line that differs only in
  numbers, or else by the most similar line.
Pages run in a folder with `models` and `scripts`, and with `trainer` in PATH.
"""

import difflib
import importlib.util
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
GROUPS = ("dataset",)  # verbs whose first argument is a task
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NEEDS = re.compile(r"^```sh needs=(\w+)\n(.*?^```\n)(\n*```text\n.*?^```\n)?", re.M | re.S)
SAVED = re.compile(r"# ([\w/-]+\.(?:prototxt|py))\b")


def without_missing(page, write):
    """Blanks the blocks whose needed module is missing, or with `write` all blocks with needs=."""
    def kept(match):
        if not write and importlib.util.find_spec(match[1]):
            return f"```sh\n{match[2]}{match[3] or ''}"
        return re.sub(r"[^\n]", " ", match[0])

    return NEEDS.sub(kept, page)


def without_prefix(line):
    """Returns a line without the log's prefix."""
    return re.sub(r"^[IWE]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] ", "", line.rstrip())


def masked(line):
    """Returns a line without the log's prefix, with numbers, checksums and blanks normalised."""
    numbers = r"\b[\da-f]{8}\b|[-+]?\d[\d.,:e+-]*"
    return " ".join(re.sub(numbers, "0", without_prefix(line)).split())


def refreshed(text, output):
    """Returns a ```text block with its lines replaced by lines of a new output, as for --write."""
    fresh = [without_prefix(line) for line in output.rstrip("\n").split("\n")]
    if not text.strip():
        return "\n".join(fresh) + "\n"
    lines = []
    for line in text.rstrip("\n").split("\n"):
        alike = [new for new in fresh if masked(new) == masked(line)]
        if line.strip() not in ("", "..."):
            line = max(alike or difflib.get_close_matches(line, fresh, n=1) or [line],
                       key=lambda new, old=line: len(os.path.commonprefix([new, old])))
            if line in fresh:
                fresh.remove(line)
        lines.append(line)
    return "\n".join(lines) + "\n"


class Page:
    def __init__(self, path, trainer, folder, write=False):
        self.path, self.trainer, self.folder, self.write = path, trainer, folder, write
        self.fresh = []  # (begin, end, text) of ```text blocks that get new numbers
        self.failures = []
        self.output = ""
        self.commands = 0
        (folder / "bin").mkdir()
        (folder / "bin/trainer").symlink_to(trainer)
        for name in ("models", "scripts"):
            (folder / name).symlink_to(ROOT / name)

    def fail(self, text, at):
        line = self.path.read_text()[:at].count("\n") + 1
        self.failures.append(f"{self.path.relative_to(ROOT)}:{line}: {text}")

    def bash(self, script):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
        output = done.stdout.replace(str(self.folder), "/tmp/you")
        return done.returncode, re.sub(rf"\b{re.escape(platform.node())}\b", "node1", output)

    def check_part(self, text, at):
        """Checks that `trainer upgrade` can read these fields of a net or a solver."""
        part = self.folder / "part.prototxt"
        part.write_text(text)
        code, output = self.bash("rm -f part_out.prototxt; "
                                 "trainer upgrade part.prototxt part_out.prototxt")
        if code:
            self.fail(f"not read: {output}", at)

    def run(self):
        page = without_missing(self.path.read_text(), self.write)
        for block in BLOCK.finditer(page):
            kind, text, at = block.group(1), block.group(2), block.start()
            if kind == "prototxt":
                name = SAVED.match(text)
                if name:
                    (self.folder / name.group(1)).write_text(text)
                else:
                    self.check_part(text, at)
            elif kind == "python":
                compile(text, str(self.path), "exec")
                (self.folder / SAVED.match(text).group(1)).write_text(text)
            elif kind == "sh":
                self.commands += 1
                code, self.output = self.bash(text)
                if code:
                    self.fail(f"ended with {code}:\n{text}{self.output[-3000:]}", at)
            elif kind == "text":
                if self.write:
                    text = refreshed(text, self.output)
                    self.fresh.append((*block.span(2), text))
                seen = {masked(line) for line in self.output.split("\n")}
                for line in text.split("\n"):
                    if line.strip() not in ("", "...") and masked(line) not in seen:
                        self.fail(f"not in the output: {line.strip()}", at)
            elif kind not in ("cpp", "cmake"):
                self.fail(f"a block of unknown kind: {kind}", at)
        if not self.commands:
            self.fail("runs no command", 0)
        return self.failures

    def write_outputs(self):
        page = self.path.read_text()
        for begin, end, text in reversed(self.fresh):
            page = page[:begin] + text + page[end:]
        self.path.write_text(page)


def run_pages(trainer, names, write):
    failures = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            page = Page(ROOT / name, trainer, pathlib.Path(folder), write)
            failures += page.run()
            if write:
                page.write_outputs()
            print(f"{name}: {page.commands} blocks of commands")
    return failures


def all_pages():
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("models/**/*.md"),
                   *ROOT.glob("scripts/**/*.md"), *ROOT.glob("src/**/*.md"), *ROOT.glob("tests/*.md")])


def commands_in(text):
    """Yields (line number, command) of each trainer command in code blocks and `spans`."""
    for number, line in enumerate(text.split("\n"), 1):
        spans = re.findall(r"`([^`]+)`", line)
        if line.startswith("    ") or re.match(r"(mkdir|srun|mpirun|trainer|TRAINER)\b", line):
            spans.append(line)
        for span in spans:
            for part in re.split(r"\s#\s|[;|>]|&&", span):
                found = re.search(r"(?:^|\s|release/)trainer ((?:[a-z][\w-]*)(?: .*)?)$", part.rstrip())
                if found:
                    yield number, found.group(1)


def check_flags(trainer):
    """Checks that the program has every verb and flag that a page names."""
    pages = {}

    def page_of(*verb):
        if verb not in pages:
            done = subprocess.run([trainer, "help", *verb], text=True, capture_output=True, check=False)
            if "\ntasks:\n" in done.stdout and len(verb) == 1:
                return None  # flags belong to the tasks
            pages[verb] = set(re.findall(r"--(\w+)", done.stdout)) if done.returncode == 0 else None
        return pages[verb]

    failures, count = [], 0
    for path in all_pages():
        for number, command in commands_in(path.read_text()):
            count += 1
            place = f"{path.relative_to(ROOT)}:{number}"
            verb, *words = command.split()
            task = [word for word in words[:1] if re.fullmatch(r"[a-z]\w*", word)]
            flags = page_of(verb) or page_of(verb, *task)
            if flags is None:
                if verb in GROUPS and not task:
                    continue
                failures.append(f"{place}: there is no verb '{verb}'")
                continue
            for flag in re.findall(r"(?<=\s)--(\w+)", command):
                if flag not in flags and flag.removeprefix("no") not in flags and flag != "help":
                    failures.append(f"{place}: 'trainer {verb}' has no flag --{flag}")
    print(f"{count} commands")
    return failures if count > 80 else [*failures, "too few commands were found"]


def anchors(text):
    """Returns the anchors that GitHub gives to the headings of a page."""
    found, seen = set(), {}
    for heading in re.findall(r"^#+ +(.*?) *$", BLOCK.sub("", NEEDS.sub("", text)), re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
    return found


def links_of(path):
    """Yields (target, anchor) of each relative link of a page."""
    text = re.sub(r"^(?: {4}|\t).*|`[^`\n]*`", "", BLOCK.sub("", path.read_text()), flags=re.M)
    for link in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text):
        target, _, anchor = (link[0] or link[1]).partition("#")
        if not re.match(r"\w+:", target):
            yield target, anchor


def unreached():
    """Returns the pages of docs/ that are not reachable by links from the README."""
    found, ahead = set(), [ROOT / "README.md"]
    while ahead:
        path = ahead.pop()
        if path not in found and path.suffix == ".md" and path.exists():
            found.add(path)
            ahead += [(path.parent / target).resolve() for target, _ in links_of(path) if target]
    return [path for path in ROOT.glob("docs/**/*.md") if path not in found]


def check_links():
    """Checks that every relative link leads to a file and, if it has an anchor, to a heading."""
    failures, count = [], 0
    for path in all_pages():
        for target, anchor in links_of(path):
            count += 1
            page = (path.parent / target).resolve() if target else path
            if not page.exists():
                failures.append(f"{path.relative_to(ROOT)}: there is no {target}")
            elif anchor and anchor not in anchors(page.read_text()):
                failures.append(f"{path.relative_to(ROOT)}: {target or 'it'} has no heading #{anchor}")
    failures += [f"{path.relative_to(ROOT)}: no link leads there" for path in unreached()]
    print(f"{count} links")
    return failures if count > 20 else [*failures, "too few links were found"]


def main(arguments):
    trainer = pathlib.Path(arguments[0]).resolve()
    if arguments[1:] == ["--flags"]:
        failures = check_flags(trainer)
    elif arguments[1:] == ["--links"]:
        failures = check_links()
    else:
        write = arguments[1:2] == ["--write"]
        failures = run_pages(trainer, arguments[2 if write else 1:], write)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
