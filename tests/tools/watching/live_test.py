"""Tests the live view of a run in tmux, with 80, 200 and 60 columns: live_test.py TRAINER

Exits with 77 if tmux is not installed.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from watching_test import SKIPPED, SOLVER, Job


def tmux(server, *words):
    return subprocess.run(["tmux", "-L", server, *words], text=True, capture_output=True, check=True,
                          timeout=60).stdout


def screen(server, part, seconds=60):
    """Waits until the screen shows `part` and returns it."""
    for _ in range(seconds * 10):
        text = tmux(server, "capture-pane", "-p", "-t", "view")
        if part in text:
            return text
        time.sleep(0.1)
    raise AssertionError(f"'{part}' is not on the screen:\n{text}")


def live_lines(text):
    return [line for line in text.split("\n") if " left" in line]


def resize(server, width):
    tmux(server, "resize-window", "-t", "view", "-x", str(width), "-y", "24")


def redrawn(server, part, times=3):
    """Returns the screen once the line with `part` was drawn `times` times. Waiting matters: tmux
    reports a second resize to the program only a quarter of a second after the first."""
    text = screen(server, part)
    for _ in range(times):
        before = live_lines(text)
        while live_lines(text) == before:
            time.sleep(0.1)
            text = screen(server, part)
    return text


def watch(server, command):
    """Returns the last screen of a run in a terminal whose width changes. Returns None if rows of
    the live line were left when it became narrower: the program may have read the width just before
    the change and written just after it, which cannot be prevented."""
    tmux(server, "-f", "/dev/null", "new-session", "-d", "-s", "view", "-x", "80", "-y", "24",
         "sh")
    tmux(server, "send-keys", "-t", "view", f"PS1='$ '; clear; {command}", "Enter")
    text = screen(server, "img/s")
    line = live_lines(text)
    assert len(line) == 1 and len(line[0]) < 80, text
    for part in ("/100000000", "ep ", "loss ", "rate ", "img/s", " left"):
        assert part in line[0], line
    assert "log: snap" in text and "training small: 100000000 iterations" in text, text
    resize(server, 200)
    text = redrawn(server, "images/s")
    line = live_lines(text)
    assert len(line) == 1 and "iteration " in line[0] and "[" in line[0], text
    resize(server, 60)
    text = screen(server, "img/s")
    if len(live_lines(text)) != 1 or "images/s" in text:
        print(f"left as the terminal became narrower:\n{text.rstrip()}")
        return None
    resize(server, 200)
    screen(server, "test accuracy")
    tmux(server, "send-keys", "-t", "view", "C-c")
    return screen(server, "stopped at iteration")


def test_live(job):
    if not shutil.which("tmux"):
        print("tmux is not installed")
        sys.exit(SKIPPED)
    solver = job.folder / "solver.prototxt"
    solver.write_text(SOLVER.replace("max_iter: 40", "max_iter: 100000000").replace(
        "test_interval: 10", "test_interval: 10000").replace("snapshot: 10", "").replace(
        "display: 5", "display: 500"))
    text = None
    for attempt in range(5):
        server = f"trainer-{os.getpid()}-{attempt}"
        try:  # an earlier run may still be ending, so each has its own prefix
            text = watch(server, f"cd {shlex.quote(str(job.folder))} && "
                                 f"{shlex.quote(str(job.trainer))} train --solver=solver.prototxt "
                                 f"--set snapshot_prefix=snap{attempt}")
        finally:
            tmux(server, "kill-server")
        if text:
            break
    assert text and f"saved snap{attempt}_iter_" in text and "--resume=auto" in text, text
    assert not live_lines(text), text
    print(text.rstrip())
    log = (job.folder / f"snap{attempt}.log").read_text()
    assert "Solving small" in log and "Train net output #0" in log and "Net small, phase TEST" in log


def main(arguments):
    with tempfile.TemporaryDirectory() as folder:
        test_live(Job(pathlib.Path(arguments[0]).resolve(), folder))


if __name__ == "__main__":
    main(sys.argv[1:])
