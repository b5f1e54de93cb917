#!/usr/bin/env python3
"""All that this machine's GPU can show of trainer, within eight minutes; see check.sh.

    check.py [--root=BUNDLE] [--json=FILE] [--seconds=480] [--only=STEP,STEP] [--dry]

Needs Python's standard library; the speed table needs PyTorch with CUDA, the sanitizer step
compute-sanitizer of the CUDA toolkit. What cannot run is left out with its reason.
"""

import argparse
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time

import steps
from bundle import Bundle, Result

TOTAL_SECONDS = 480
GRACE = 3  # seconds in which a step that kept to its time ends what it started


class StepIsLate(Exception):
    """A step is ended, whatever it waits for."""


def end_step(*_):
    raise StepIsLate


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=str(pathlib.Path(__file__).resolve().parents[2]),
                        help="the bundle")
    parser.add_argument("--json", default="gpu_check.json", help="where the results go")
    parser.add_argument("--seconds", type=float, default=TOTAL_SECONDS, help="for all steps")
    parser.add_argument("--dry", action="store_true",
                        help="small nets and few iterations, PyTorch on the CPU: shows that the "
                             "steps work, with an emulated GPU, too")
    parser.add_argument("--only", default="", help="names of steps, with commas between")
    args = parser.parse_args()
    names = [step.name for step in steps.ALL]
    for name in filter(None, args.only.split(",")):
        if name not in names:
            parser.error(f"no step '{name}'; there are {', '.join(names)}")
    return args


def run_step(step, bundle, seconds):
    """What the step said, or why it is left out or failed, as a row of the report."""
    begin = time.monotonic()
    result = Result()
    reason = bundle.lacks(step.needs)
    if not reason and seconds < 5:
        reason = "no time is left"
    if reason:
        return {"step": step.name, "left_out": reason}
    seconds = min(bundle.small(step.seconds, 10 * step.seconds), seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)
    try:
        step.run(bundle, result, seconds)
    except subprocess.TimeoutExpired as late:
        result.fail(f"took more than {late.timeout:.0f} s")
    except StepIsLate:
        result.fail(f"took more than its {seconds:.0f} s")
    except Exception as error:  # a step must not end the others
        result.fail(f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"step": step.name, "passed": result.passed, "failed": result.failed,
            "skipped": result.skipped, "notes": result.notes, "figures": result.figures,
            "seconds": round(time.monotonic() - begin, 1)}


def show(row):
    if "left_out" in row:
        print(f"left out  {row['step']}: {row['left_out']}", flush=True)
        return
    verdict = "FAILED" if row["failed"] else "passed"
    counts = f"{row['passed']} passed, {row['failed']} failed"
    if row["skipped"]:
        counts += f", {row['skipped']} skipped"
    print(f"{verdict:9} {row['step']}: {counts} ({row['seconds']:.0f} s)", flush=True)
    for note in row["notes"]:
        print(f"          {note}", flush=True)


def write_report(path, bundle, rows, seconds):
    """Gives the totals. The file is whole at any time."""
    totals = {key: sum(row.get(key, 0) for row in rows) for key in ("passed", "failed",
                                                                     "skipped")}
    totals["left_out"] = sum("left_out" in row for row in rows)
    report = {"machine": platform.node(), "gpus": bundle.gpus, "cores": os.cpu_count(),
              "seconds": round(seconds, 1), **totals, "steps": rows}
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
    return totals


def main():
    args = parse()
    only = [name for name in args.only.split(",") if name]
    begin = time.monotonic()
    rows = []
    path = pathlib.Path(args.json).resolve()
    signal.signal(signal.SIGALRM, end_step)
    with tempfile.TemporaryDirectory() as folder:
        bundle = Bundle(pathlib.Path(args.root).resolve(), pathlib.Path(folder),
                        args.dry)
        for step in steps.ALL:
            if only and step.name not in only:
                continue
            row = run_step(step, bundle, args.seconds - (time.monotonic() - begin))
            rows.append(row)
            show(row)
            write_report(path, bundle, rows, time.monotonic() - begin)
        totals = write_report(path, bundle, rows, time.monotonic() - begin)
    print(f"{totals['passed']} passed, {totals['failed']} failed; "
          f"{totals['left_out']} steps left out; all of it is in {args.json}")
    sys.exit(1 if totals["failed"] else 0)


if __name__ == "__main__":
    main()
