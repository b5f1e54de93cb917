"""kill -9 at random moments while every iteration writes a snapshot."""

import random
import re
import signal
import time

from job import Wrong, require, send

RANKS = 2
FLAGS = (f"--ranks={RANKS}", "--resume=auto")
ENDLESS = 100000000
START_SECONDS = 0.6  # approximate time until a run begins to train
SAVING_SECONDS = 0.2


class Kills:
    """Each run resumes from the files that the killed run before it left."""

    def __init__(self, job):
        self.job = job
        self.newest = 0  # iteration of the newest snapshot before the run
        self.strays = self.gained = self.of_all = 0

    def trial(self):
        """Starts and kills a run, then checks that it found the files of the run before it."""
        with self.job.start(*FLAGS, max_iter=ENDLESS, snapshot=1, keep_last=3,
                            display=0) as run:
            try:
                self.live_and_die(run)
            except Wrong as wrong:
                wrong.lines = run.lines
                raise

    def live_and_die(self, run):
        before = self.newest
        if random.random() < 0.2:
            time.sleep(random.uniform(0, START_SECONDS))
        else:
            run.wait_for("Snapshotting to")
            time.sleep(random.uniform(0, SAVING_SECONDS))
        if random.random() < 0.5:
            self.of_all += 1
            run.kill()
            code = run.wait()
            require(code == -signal.SIGKILL, f"exit code {code} before the kill")
        else:
            process = run.wait_for_rank(random.randrange(RANKS))
            require(process is not None, "ended before the kill")
            send(process, signal.SIGKILL)
            code = run.wait(30)
            require(code == 82, f"exit code {code}, not 82")
            require(len(run.errors()) == 1, f"messages: {run.errors()}")
        run.require_no_orphans()
        require(not run.found("is not usable"), "the newest snapshot was not whole")
        resumed = run.found(r"Resuming from \S*_iter_(\d+)\.")
        fresh = run.found("There is no snapshot")
        if resumed:
            require(int(resumed[0][1]) == before, f"went on from {resumed[0][1]}, not {before}")
        require(not fresh or before == 0, f"started anew with a snapshot of {before}")
        self.newest = self.job.newest()
        require(self.newest >= before, f"the newest snapshot is {self.newest}, it was {before}")
        self.gained += self.newest > before
        self.strays += sum(".tmp." in path.name for path in self.job.disk.iterdir())

    def compare(self):
        """Compares the last snapshot with the snapshot of a run without kills."""
        last = self.newest
        require(last > 0, "no run came as far as a snapshot")
        weights = self.job.weights(last)
        with self.job.start(*FLAGS, max_iter=last + 1, display=0) as run:
            require(run.wait() == 0, "the run after the last kill fails")
            require(run.found(rf"Resuming from \S*_iter_{last}\."), "it does not go on")
        left = [path.name for path in self.job.disk.iterdir()
                if not re.fullmatch(r"snap_iter_\d+\.(caffemodel|solverstate)", path.name)]
        require(not left, f"a run that ended well leaves {left}")
        self.job.clear()
        with self.job.start(*FLAGS, max_iter=last, display=0) as run:
            require(run.wait() == 0, "the run without kills fails")
        require(self.job.weights(last) == weights, f"the weights of iteration {last} differ")

    def summary(self):
        return (f"{self.of_all} kills of all processes, the others of one rank; {self.gained} runs "
                f"wrote a newer snapshot; {self.strays} files were left half written, and "
                f"{self.newest} iterations done")
