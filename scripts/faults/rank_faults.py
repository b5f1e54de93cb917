"""Faults of a rank at a random moment, also during the start: it dies, hangs or becomes slow."""

import random
import re
import signal
import threading
import time

from job import Wrong, require, send

ITERATIONS, INTERVAL, DISPLAY = 2000, 200, 50
OF_SLOW = 400  # iterations of a run with a rank ten times slower
PEER_LOST = 82
DEAD_SECONDS = 30  # a dead rank ends the job within this time


class RankFaults:
    """Trains once without a fault. Each resumed trial must end with the same bytes."""

    def __init__(self, job, args):
        self.job, self.args = job, args
        self.launcher, self.flags = (), [f"--ranks={args.ranks}"]
        if args.mpirun:
            self.flags = []
            self.launcher = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np",
                             str(args.ranks))
        self.flags += ["--resume=auto", f"--peer_warning={args.peer_warning}",
                       f"--peer_timeout={args.peer_timeout}"]
        begin = time.monotonic()
        self.train()
        self.seconds = time.monotonic() - begin
        self.expected = {count: job.weights(count) for count in (ITERATIONS, OF_SLOW)}
        self.ends, self.lost = [], []

    def start(self, iterations):
        return self.job.start(*self.flags, launcher=self.launcher, max_iter=iterations,
                              snapshot=INTERVAL, display=DISPLAY)

    def train(self, iterations=ITERATIONS):
        """Trains to the end. Returns the iteration that the run resumed from, or 0."""
        with self.start(iterations) as run:
            try:
                require(run.wait() == 0, "a run without a fault fails")
                run.require_no_orphans()
                found = run.found(r"Resuming from \S*_iter_(\d+)\.")
                return int(found[0][1]) if found else 0
            except Wrong as wrong:
                wrong.lines = run.lines
                raise

    def trial(self, name):
        """Repeats until the fault comes before the end of the run."""
        iterations = OF_SLOW if name == "slow" else ITERATIONS
        while True:
            self.job.clear()
            with self.start(iterations) as run:
                rank = random.randrange(self.args.ranks)
                try:
                    if FAULTS[name](self, run, rank, random.uniform(0, self.seconds)):
                        break
                except Wrong as wrong:
                    wrong.lines = run.lines
                    raise
        newest = self.job.newest()
        if newest < iterations:
            begin = self.train(iterations)
            require(begin == newest, f"went on from {begin}, not from the newest, {newest}")
        require(self.job.weights(iterations) == self.expected[iterations],
                "the weights are not those of a run without a fault")

    def dead(self, run, rank, moment):
        expected = 137 if self.args.mpirun else PEER_LOST
        return self.strike(run, rank, moment, signal.SIGKILL, DEAD_SECONDS, expected) is not None

    def silent(self, run, rank, moment):
        process = self.strike(run, rank, moment, signal.SIGSTOP, self.args.peer_timeout + 60,
                              PEER_LOST)
        if process is None:
            return False
        warned = run.found(rf"Waiting for rank {rank} \(\S+, process {process}\), silent for (\S+) s")
        require(warned, f"no warning names rank {rank}, process {process}")
        require(float(warned[0][1]) >= self.args.peer_warning, "the warning comes too soon")
        return True

    def strike(self, run, rank, moment, number, seconds, expected):
        """Sends a signal that must end the run. Returns the rank's process, or None if it has ended."""
        process = self.await_rank(run, rank, moment)
        if process is None:
            return None
        begin = time.monotonic()
        send(process, number)
        code = run.wait(seconds)
        if code == 0:
            return None  # the run had already finished
        self.ends.append(time.monotonic() - begin)
        self.check_end(run, rank, process, code, expected)
        return process

    def slow(self, run, rank, _):
        """Slows a rank down ten times after the first iteration. The run must name it and end."""
        run.wait_for(r"\] Iteration 0[ ,]")
        process = run.ranks().get(rank)
        ended = threading.Event()

        def brake():
            while not ended.is_set():
                send(process, signal.SIGSTOP)
                ended.wait(0.18)
                send(process, signal.SIGCONT)
                time.sleep(0.02)

        braking = threading.Thread(target=brake)
        braking.start()
        try:
            require(run.wait() == 0, "a slow rank ends the run")
        finally:
            ended.set()
            braking.join()
        self.ends.append(time.monotonic() - run.begin)
        require(not run.errors(), f"errors: {run.errors()}")
        named = run.found(r"the others waited (\d+) % of their time for rank (\d+) \((\S+), process")
        times = sum(int(match[2]) == rank for match in named)
        require(times > len(named) / 2, f"rank {rank} is named {times} of {len(named)} times")
        run.require_no_orphans()
        return True

    def await_rank(self, run, rank, moment):
        """Returns the rank's process after `moment` seconds, or None if the run has ended."""
        time.sleep(moment)
        return run.wait_for_rank(rank)

    def check_end(self, run, rank, process, code, expected):
        require(code == expected, f"exit code {code}, not {expected}")
        errors = run.errors()
        require(len(errors) == 1, f"{len(errors)} messages: {errors}")
        named = re.match(rf"error: rank {rank} \((\S+), process {process}\) .*; "
                         r"its last iteration was (\d+)\. ", errors[0])
        require(named, f"the message does not name rank, host, process and iteration: {errors[0]}")
        shown = [int(match[1]) for match in run.found(r"\] Iteration (\d+)[ ,]")]
        require(int(named[2]) >= max(shown, default=0) - 1, f"iteration {named[2]} after {shown[-1:]}")
        run.require_no_orphans()
        begun = [int(match[1]) for match in run.found(r"Snapshotting to .*_iter_(\d+)\.caffemodel")]
        newest = self.job.newest()
        # Only rank 0 writes snapshots: if it died, the one that it had begun may be incomplete.
        least = max(begun, default=0) - (INTERVAL if rank == 0 else 0)
        require(newest >= least, f"the newest snapshot is {newest}, {begun[-1:]} was begun")
        self.lost.append(int(named[2]) - newest)

    def summary(self):
        text = f"ended after at most {max(self.ends):.1f} s"
        if self.lost:
            text += (f", {sum(self.lost) / len(self.lost):.0f} iterations lost on average, "
                     f"{max(self.lost)} at most (a snapshot each {INTERVAL})")
        self.ends, self.lost = [], []
        return text


FAULTS = {"dead": RankFaults.dead, "silent": RankFaults.silent, "slow": RankFaults.slow}
