"""The pages of docs/ as a reader follows them: files are written, commands run, outputs compared.

    docs_test.py TRAINER PAGE...     runs pages, each in a folder of its own
    docs_test.py TRAINER --flags     only looks up every verb and flag that any page names

In a page
- a block ```prototxt whose first line is "# name.prototxt" is a file to save under that name, any
  other one is part of a net or a solver, which must be read without a complaint;
- a block ```sh is run by bash, which stops at the first command that fails;
- a block ```text is from the output of the ```sh block before it: each of its lines must be there,
  whatever the numbers; "..." stands for lines left out.
Pages are started where `models` and `scripts` are, with `trainer` in PATH.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
SAVED = re.compile(r"# ([\w/-]+\.prototxt)\b")


def masked(line):
    """A line without its numbers, the log's prefix and runs of blanks."""
    line = re.sub(r"^[IWE]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] ", "", line)
    return " ".join(re.sub(r"[-+]?\d[\d.,:e+-]*", "0", line).split())


class Page:
    def __init__(self, path, trainer, folder):
        self.path, self.trainer, self.folder = path, trainer, folder
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
        return done.returncode, done.stdout

    def check_part(self, text, at):
        """Fields of a net or a solver: read as `trainer upgrade` reads files."""
        part = self.folder / "part.prototxt"
        part.write_text(text)
        code, output = self.bash("rm -f part_out.prototxt; "
                                 "trainer upgrade part.prototxt part_out.prototxt")
        if code:
            self.fail(f"not read: {output}", at)

    def run(self):
        for block in BLOCK.finditer(self.path.read_text()):
            kind, text, at = block.group(1), block.group(2), block.start()
            if kind == "prototxt":
                name = SAVED.match(text)
                if name:
                    (self.folder / name.group(1)).write_text(text)
                else:
                    self.check_part(text, at)
            elif kind == "sh":
                self.commands += 1
                code, self.output = self.bash(text)
                if code:
                    self.fail(f"ended with {code}:\n{text}{self.output[-3000:]}", at)
            elif kind == "text":
                seen = {masked(line) for line in self.output.split("\n")}
                for line in text.split("\n"):
                    if line.strip() not in ("", "...") and masked(line) not in seen:
                        self.fail(f"not in the output: {line.strip()}", at)
            else:
                self.fail(f"a block of unknown kind: {kind}", at)
        if not self.commands:
            self.fail("runs no command", 0)
        return self.failures


def run_pages(trainer, names):
    failures = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            page = Page(ROOT / name, trainer, pathlib.Path(folder))
            failures += page.run()
            print(f"{name}: {page.commands} blocks of commands")
    return failures


def commands_in(text):
    """(line number, command) for what follows the word trainer in code: blocks and `spans`."""
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
    """Every verb and flag that a page names is one of the program's."""
    pages = {}

    def page_of(verb):
        if verb not in pages:
            done = subprocess.run([trainer, "help", verb], text=True, capture_output=True, check=False)
            pages[verb] = set(re.findall(r"--(\w+)", done.stdout)) if done.returncode == 0 else None
        return pages[verb]

    failures, count = [], 0
    for path in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("models/**/*.md")]):
        for number, command in commands_in(path.read_text()):
            count += 1
            place = f"{path.relative_to(ROOT)}:{number}"
            verb = command.split()[0]
            flags = page_of(verb)
            if flags is None:
                failures.append(f"{place}: there is no verb '{verb}'")
                continue
            for flag in re.findall(r"(?<=\s)--(\w+)", command):
                if flag not in flags and flag.removeprefix("no") not in flags and flag != "help":
                    failures.append(f"{place}: 'trainer {verb}' has no flag --{flag}")
    print(f"{count} commands")
    return failures if count > 80 else [*failures, "too few commands were found"]


def main(arguments):
    trainer = pathlib.Path(arguments[0]).resolve()
    if arguments[1:] == ["--flags"]:
        failures = check_flags(trainer)
    else:
        failures = run_pages(trainer, arguments[1:])
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
