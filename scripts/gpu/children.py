"""Starts the programs of a step, each in its own process group, and ends them with their
children. A program that takes too long may first write what it has.
"""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import threading

WRITE_SECONDS = 5  # for a program that is late, between SIGINT and SIGKILL

_groups = set()
_lock = threading.Lock()


def start(command, outlives_step=False, **options):
    """Returns a Popen. end_all() ends its process group unless outlives_step."""
    process = subprocess.Popen([str(word) for word in command], text=True, start_new_session=True,
                               **options)
    if not outlives_step:
        with _lock:
            _groups.add(process.pid)
    return process


def send(group, number):
    """Sends a signal to the process group, if it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def interrupt(process):
    """Sends SIGINT to the process group and waits up to WRITE_SECONDS for its end: ncu then writes
    what it has measured. Returns its stdout and stderr, "" if it has not ended."""
    send(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=WRITE_SECONDS)
    except subprocess.TimeoutExpired:
        return "", ""
    return out or "", err or ""


def end(process):
    """Kills the process group, if it still exists, and waits for the process."""
    send(process.pid, signal.SIGKILL)
    process.wait()
    with _lock:
        _groups.discard(process.pid)


def end_all():
    """Ends the running programs; threads that wait for them continue."""
    with _lock:
        groups = set(_groups)
    for group in groups:
        send(group, signal.SIGKILL)


def run(command, timeout, **options):
    """Returns a CompletedProcess with stdout and stderr. Throws subprocess.TimeoutExpired, with
    what the program has printed if it ended on SIGINT."""
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, errors="replace", **options)
    try:
        out, err = process.communicate(timeout=max(0.1, timeout))
    except subprocess.TimeoutExpired as late:
        late.stdout, late.stderr = interrupt(process)
        raise
    finally:
        end(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_well(command, timeout, **options):
    """Returns the output of a program, which must exit with code 0."""
    done = run(command, timeout, **options)
    if done.returncode != 0:
        words = " ".join(map(str, command[:3]))
        raise RuntimeError(f"{words} ended with {done.returncode}: "
                           f"{(done.stderr + done.stdout)[-1500:].strip()}")
    return done.stdout + done.stderr


@contextlib.contextmanager
def threads(count):
    """Yields a pool whose threads wait for programs. An exception ends the programs."""
    pool = concurrent.futures.ThreadPoolExecutor(max(1, count))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        end_all()
        raise
    finally:
        pool.shutdown()
