#!/usr/bin/env python3
"""Checks trainer on this machine's GPU within eight minutes; see check.sh."""

import argparse
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import children
import speed
import steps
from bundle import Bundle, roomy_folder
from report import Report, Result, short_notes, verdict

TOTAL_SECONDS = 480
MARGIN = 10  # seconds at the end in which no step runs
GRACE = children.WRITE_SECONDS + 3  # extra seconds for a step to end its programs by itself
DRY_FACTOR = 100  # factor on all times with --dry, because emulation is slow
LEAST = 4    # the fewest seconds for which a step starts
MOST_NOTES, MOST_TEXT = 40, 500  # printed notes of a step, and characters of a note

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StepIsLate(Exception):
    """Raised by a timer, so that it ends a late step even while it waits."""


class Interrupted(BaseException):
    """Raised when a signal asks the run to end. The run keeps its results."""


def end_step(*_):
    raise StepIsLate


def end_run(*_):
    raise Interrupted


def ignore_signals():
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2],
                        type=pathlib.Path, help="the bundle; it may be read-only")
    parser.add_argument("--trainer", type=pathlib.Path, help="the program (ROOT/trainer)")
    parser.add_argument("--results", default="gpu_check", type=pathlib.Path,
                        help="a folder for summary.txt, results.json and profiles (gpu_check)")
    parser.add_argument("--seconds", type=float, default=TOTAL_SECONDS, help="for all steps (480)")
    parser.add_argument("--cifar10", type=pathlib.Path, metavar="FOLDER",
                        help="train.tar and test.tar with pictures of ten classes, for accuracies; "
                             "without them digits that are drawn")
    parser.add_argument("--python", default=sys.executable,
                        help="a Python with PyTorch, to compare with; none: do not compare")
    parser.add_argument("--dry", action="store_true",
                        help="small nets and few iterations, PyTorch on the CPU: shows that the "
                             "steps work, with an emulated GPU, too")
    parser.add_argument("--only", default="", help="names of steps, with commas between")
    args = parser.parse_args()
    names = [step.name for step in steps.ALL]
    for name in filter(None, args.only.split(",")):
        if name not in names:
            parser.error(f"no step '{name}'; there are {', '.join(names)}")
    if args.cifar10 and not (args.cifar10 / "test.tar").is_file():
        parser.error(f"--cifar10={args.cifar10}: there is no test.tar in it")
    trainer = args.trainer or args.root / "trainer"
    if not trainer.is_file():
        parser.error(f"{trainer} is not there; give --trainer=PROGRAM, or --root=BUNDLE")
    return args


def time_of(step, later, left):
    """Returns the seconds for `step` if `left` remain: its own time plus the time that earlier
    steps did not need, up to twice its own. It leaves the later steps their own times."""
    spare = left - sum(other.seconds for other in later)
    return max(min(spare, 2 * step.seconds), min(step.seconds, left))


def run_step(step, bundle, seconds, tell=lambda row: None):
    """Returns the step's result, or why it was skipped or failed, as a row of the report."""
    begin = time.monotonic()
    if seconds < LEAST:
        return {"step": step.name, "left_out": "no time is left"}

    def row(ended):
        return result.row(step.name, time.monotonic() - begin, ended)

    result = Result(lambda: tell(row(False)))
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)
        if reason := bundle.lacks(step.needs):
            return {"step": step.name, "left_out": reason}
        step.run(bundle, result, seconds)
    except subprocess.TimeoutExpired as late:
        result.cut(f"took more than {late.timeout:.0f} s: not all of it was done")
    except StepIsLate:
        result.cut(f"took more than its {seconds:.0f} s: not all of it was done")
    except (Exception, SystemExit) as error:  # a failed step must not end the run
        result.fail(f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        children.end_all()
    return row(True)


def show(row):
    print(verdict(row), flush=True)
    for line in [*row.get("lines", ()), *short_notes(row, MOST_NOTES, MOST_TEXT)]:
        print(f"          {line}", flush=True)


def run_all(args, bundle, report, clock):
    only = [name for name in args.only.split(",") if name]
    todo = [step for step in steps.ALL if not only or step.name in only]
    for i, step in enumerate(todo):
        later = [other for other in todo[i + 1:] if bundle.may_run(other.needs)]
        slower = bundle.small(1, DRY_FACTOR)
        seconds = slower * time_of(step, later, args.seconds - MARGIN - clock() / slower)
        row = run_step(step, bundle, seconds, report.add)
        report.add(row)
        show(row)
        tend_peers(bundle, [other for other in todo[i + 1:] if bundle.may_run(other.needs)])


def tend_peers(bundle, later):
    """Lets PyTorch's processes compile from the end of the first step until speed is measured."""
    try:
        if not any(other.run in speed.STEPS for other in later):
            if bundle.peers:
                bundle.peers.close()
        elif bundle.peers:
            bundle.peers.go_on()
        elif bundle.gpus:
            speed.start_peers(bundle)
    except Exception as error:  # the steps work without them
        print(f"check: PyTorch: {type(error).__name__}: {error}", flush=True)


def main():
    args = parse()
    begin = time.monotonic()
    signal.signal(signal.SIGALRM, end_step)
    for number in ENDING:
        signal.signal(number, end_run)

    def clock():
        return time.monotonic() - begin

    with tempfile.TemporaryDirectory(dir=roomy_folder(), ignore_cleanup_errors=True) as folder:
        bundle = Bundle(args.root.resolve(), pathlib.Path(folder), args)
        try:
            report = Report(args.results.resolve(), bundle, clock)
        except OSError as error:
            sys.exit(f"check: no results can be written: {error}; give another --results=FOLDER")
        bundle.put_result = report.put
        try:
            run_all(args, bundle, report, clock)
            ignore_signals()
        except Interrupted:
            ignore_signals()
            print("check: ended by a signal; what was found is kept", flush=True)
        finally:
            ignore_signals()
            children.end_all()
            if bundle.peers:
                bundle.peers.close()
            summary = report.write()
    print(f"\n{summary}All of it is in {args.results}")
    sys.exit(1 if report.totals()["failed"] else 0)


if __name__ == "__main__":
    main()
