"""Faults of a disk during snapshots: full, not writable, gone, or slow."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

from job import Wrong, require, send

RANKS = 2
ENDLESS = 100000000
NOBODY = 65534
NO_ROOM, CANNOT_CREATE, NO_PERMISSION, STOPPED = 74, 73, 77, 75
SLOW_BYTES = 60000  # bytes per second: a snapshot of 400 kB takes seconds
THROTTLE = pathlib.Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")


def call(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Disk:
    """The folder of the snapshots, with a fault that inject() starts and lift() ends."""

    code, words = NO_ROOM, "No space left on device; the disk is full"
    as_nobody = False  # True where root could still write

    def __init__(self, job):
        self.job, self.folder = job, job.disk

    def lacks(self):
        return "" if os.geteuid() == 0 else "needs root"

    def attach(self):
        """Mounts a file system, if this fault needs one."""

    def detach(self):
        """Undoes attach()."""

    def contents(self):
        return self.job.contents()


class Full(Disk):
    def attach(self):
        call("mount", "-t", "tmpfs", "-o", "size=4m", "none", self.folder)

    def detach(self):
        call("umount", self.folder)

    def inject(self, _):
        with open(self.folder / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass  # the disk is full now

    def lift(self, _):
        (self.folder / "filler").unlink()


class ReadOnly(Full):
    code, words = NO_PERMISSION, "Read-only file system"

    def inject(self, _):
        call("mount", "-o", "remount,ro", self.folder)

    def lift(self, _):
        call("mount", "-o", "remount,rw", self.folder)


class Limit(Disk):
    """RLIMIT_FSIZE, which `ulimit -f` and some quotas set, in all processes of the run."""

    words = "File too large"

    def lacks(self):
        return ""

    def set(self, run, most):
        for process in run.processes():
            resource.prlimit(process, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def inject(self, run):
        self.set(run, 50000)

    def lift(self, run):
        self.set(run, resource.RLIM_INFINITY)


class Unwritable(Disk):
    code, words, as_nobody = NO_PERMISSION, "Permission denied", True

    def lacks(self):
        return ""

    def inject(self, _):
        self.folder.chmod(0o555)

    def lift(self, _):
        self.folder.chmod(0o777)


class Gone(Disk):
    code, words = CANNOT_CREATE, "create the folder first"

    def lacks(self):
        return ""

    def away(self):
        return self.folder.with_name("away")

    def inject(self, _):
        self.folder.rename(self.away())

    def lift(self, _):
        self.away().rename(self.folder)

    def contents(self):
        folder = self.folder if self.folder.exists() else self.away()
        return {path.name: path.read_bytes() for path in folder.glob("snap_iter_*")}


class Slow(Disk):
    """A loop device that is throttled to SLOW_BYTES per second."""

    def lacks(self):
        if not THROTTLE.exists():
            return "needs the blkio controller of cgroup v1"
        if not shutil.which("losetup") or not shutil.which("mkfs.ext4"):
            return "needs losetup and mkfs.ext4"
        return super().lacks()

    def attach(self):
        image = self.job.folder / "image"
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        self.device = call("losetup", "-f", "--show", image)
        call("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", self.device)
        call("mount", self.device, self.folder)
        (self.folder / "lost+found").rmdir()

    def throttle(self, bytes_per_second):
        number = os.stat(self.device).st_rdev
        THROTTLE.write_text(f"{os.major(number)}:{os.minor(number)} {bytes_per_second}\n",
                            encoding="ascii")

    def detach(self):
        self.throttle(0)  # no limit
        call("umount", self.folder)
        call("losetup", "-d", self.device)

    def inject(self, _):
        self.throttle(SLOW_BYTES)

    def lift(self, _):
        self.throttle(0)


DISKS = {"full": Full, "limit": Limit, "readonly": ReadOnly, "unwritable": Unwritable,
         "gone": Gone, "slow": Slow}


class DiskFaults:
    """One trial for each kind of disk."""

    def __init__(self, job):
        self.job = job

    def lacks(self, name):
        return DISKS[name](self.job).lacks()

    def start(self, disk, *flags, **settings):
        user = NOBODY if disk.as_nobody and os.geteuid() == 0 else None
        return self.job.start(f"--ranks={RANKS}", "--resume=auto", *flags, user=user, display=5,
                              **settings)

    def trial(self, name):
        self.job.clear()
        disk = DISKS[name](self.job)
        disk.attach()
        try:
            if disk.as_nobody:
                self.job.open_to_all()
            with self.start(disk, max_iter=ENDLESS) as run:
                try:
                    (self.slow if name == "slow" else self.broken)(disk, run)
                except Wrong as wrong:
                    wrong.lines = run.lines
                    raise
            self.go_on(disk)
            if name == "full":
                self.until_time_is_up(disk)
        finally:
            disk.detach()

    def first(self, run):
        """Asks for a first snapshot, before the fault, and returns its iteration."""
        run.wait_for(r"\] Iteration 20[ ,]")
        self.ask(run)
        return self.await_newer(0)

    def ask(self, run):
        send(run.process.pid, signal.SIGHUP)

    def await_newer(self, iteration, seconds=60):
        end = time.monotonic() + seconds
        while self.job.newest() <= iteration:
            require(time.monotonic() < end, f"no snapshot after that of {iteration} in {seconds} s")
            time.sleep(0.05)
        return self.job.newest()

    def broken(self, disk, run):
        first = self.first(run)
        before = disk.contents()
        disk.inject(run)
        self.ask(run)
        failed = "could not be written; training goes on, and it is tried again in "
        first_try, _ = run.wait_for(
            rf"\] The snapshot of iteration \d+ {failed}10 s\. .*{disk.words}")
        line, _ = run.wait_for(rf"{failed}20 s\.", first_try)
        require(self.reports(run, first_try, line) > 2, "training stood still between two tries")
        self.require_intact(disk, before)
        disk.lift(run)
        newest = self.await_newer(first)
        before = disk.contents()
        disk.inject(run)
        send(run.process.pid, signal.SIGTERM)
        self.check_end(disk, run)
        self.require_intact(disk, before)
        disk.lift(run)
        require(self.job.newest() == newest, "the snapshot that failed is there")

    def reports(self, run, begin, end=None):
        return sum("] Iteration " in line for line in run.lines[begin:end])

    def require_intact(self, disk, before):
        now = disk.contents()
        changed = [name for name, content in before.items() if now.get(name) != content]
        require(not changed, f"no longer what they were: {changed}")

    def check_end(self, disk, run):
        code = run.wait(60)
        require(code == disk.code, f"exit code {code}, not {disk.code}")
        errors = run.errors()
        require(len(errors) == 1 and disk.words in errors[0], f"messages: {errors}")
        run.require_no_orphans()

    def slow(self, disk, run):
        first = self.first(run)
        disk.inject(run)
        line = len(run.lines)
        begin = time.monotonic()
        self.ask(run)
        self.await_newer(first)
        seconds = time.monotonic() - begin
        require(seconds > 2, f"the disk was not slow: {seconds:.1f} s")
        require(self.reports(run, line) > 2, f"training stood still for {seconds:.1f} s")
        require(not run.found("could not be written"), "a slow disk is taken for a broken one")
        send(run.process.pid, signal.SIGTERM)
        code = run.wait(60)
        require(code == STOPPED, f"exit code {code}, not {STOPPED}")
        run.require_no_orphans()
        disk.lift(run)

    def go_on(self, disk):
        """Checks that the newest snapshot resumes to the weights of a run without a fault."""
        newest = self.job.newest()
        last = newest + 50
        with self.start(disk, max_iter=last) as run:
            require(run.wait() == 0, f"a run on a sound disk fails: {run.errors()}")
            require(run.found(rf"Resuming from \S*_iter_{newest}\."), "it does not go on")
        strays = [path.name for path in self.job.disk.glob(".*")]
        require(not strays, f"left {strays}")
        weights = self.job.weights(last)
        self.job.clear()
        with self.start(disk, max_iter=last) as run:
            require(run.wait() == 0, "a run on a sound disk fails")
        require(self.job.weights(last) == weights, "the weights are not those of an undisturbed run")

    def until_time_is_up(self, disk):
        """Checks that a full disk ends the run, with an error, before --max_wall."""
        self.job.clear()
        wall = 40
        with self.start(disk, f"--max_wall={wall}s", max_iter=ENDLESS) as run:
            first = self.first(run)
            disk.inject(run)
            self.ask(run)
            run.wait_for("could not be written; training goes on")
            self.check_end(disk, run)
            seconds = time.monotonic() - run.begin
            require(seconds < wall, f"ended after {seconds:.1f} s of {wall}")
            require(run.found("The time of this run is nearly over"), "does not say why it ends")
            require(self.job.newest() == first, "the earlier snapshot is gone")
            disk.lift(run)
