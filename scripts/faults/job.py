"""A small training run for fault injection, and its processes."""

import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import uuid

NET = """name: "small"
layer { name: "digits" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.00390625 }
  data_param { source: "train_lmdb" backend: LMDB batch_size: 8 } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""

SOLVER = """net: "net.prototxt"
base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" random_seed: 1
snapshot_prefix: "disk/snap"
"""

LONGEST_SECONDS = 300  # longer than any of these runs takes: then it hangs


class Wrong(Exception):
    """A run did not behave as it must."""


def require(holds, what):
    if not holds:
        raise Wrong(what)


class Job:
    """A folder with digits, a net and a solver. Snapshots go to its folder "disk"."""

    def __init__(self, trainer, folder):
        self.trainer = pathlib.Path(trainer).resolve()
        self.folder = pathlib.Path(folder)
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        (self.folder / "net.prototxt").write_text(NET, encoding="utf-8")
        subprocess.run([self.trainer, "dataset", "digits", self.folder, "--train=500", "--test=10"],
                       check=True, capture_output=True)

    def start(self, *flags, launcher=(), user=None, **settings):
        """Starts a Run. `settings` are solver fields, such as snapshot=20."""
        lines = [SOLVER, *(f"{name}: {value}\n" for name, value in settings.items())]
        (self.folder / "solver.prototxt").write_text("".join(lines), encoding="utf-8")
        return Run([*launcher, self.trainer, "train", "--solver=solver.prototxt", *flags],
                   self.folder, user)

    def open_to_all(self):
        self.folder.chmod(0o755)
        self.disk.chmod(0o777)

    def snapshots(self):
        """Returns {iteration: path} of the solver states in the folder."""
        found = self.disk.glob("snap_iter_*.solverstate")
        return {int(re.search(r"_iter_(\d+)", path.name)[1]): path for path in found}

    def newest(self):
        return max(self.snapshots(), default=0)

    def weights(self, iteration):
        return (self.disk / f"snap_iter_{iteration}.caffemodel").read_bytes()

    def contents(self):
        """Returns {name: bytes} of all snapshots."""
        return {path.name: path.read_bytes() for path in self.disk.glob("snap_iter_*")}

    def clear(self):
        for path in self.disk.iterdir():
            path.unlink()


class Run:
    """A started program: its lines as it prints them, and all its descendant processes."""

    def __init__(self, command, folder, user=None):
        self.mark = f"TRAINER_FAULTS={uuid.uuid4()}".encode()
        name, value = self.mark.decode().split("=")
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            command, cwd=folder, user=user, env={**os.environ, name: value}, text=True,
            errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.lines = []
        self.news = threading.Condition()
        self.closed = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            with self.news:
                self.lines.append(line.rstrip("\n"))
                self.news.notify_all()
        with self.news:
            self.closed = True
            self.news.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, _, error, __):
        if isinstance(error, Wrong):
            error.lines = self.lines
        self.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def wait_for(self, pattern, after=0, seconds=LONGEST_SECONDS):
        """Waits for the first line from number `after` on that matches. Returns (number, match)."""
        end = time.monotonic() + seconds
        number = after
        with self.news:
            while True:
                for number in range(number, len(self.lines)):
                    match = re.search(pattern, self.lines[number])
                    if match:
                        return number, match
                number = max(number, len(self.lines))
                require(not self.closed, f"ended without a line that has '{pattern}'")
                left = end - time.monotonic()
                require(left > 0, f"no line has '{pattern}' after {seconds} s")
                self.news.wait(left)

    def found(self, pattern):
        return [match for match in (re.search(pattern, line) for line in list(self.lines)) if match]

    def errors(self):
        return [line for line in self.lines if line.startswith("error: ")]

    def wait(self, seconds=LONGEST_SECONDS):
        """Waits until the program has ended and all lines are read. Returns the exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Wrong(f"has not ended after {seconds:.0f} s") from None
        self.reader.join(10)  # an orphan may keep the pipe open
        return code

    def processes(self):
        """Returns {process: its environment} of processes with this run's mark, except zombies."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if self.mark in variables:
                found[int(folder.name)] = variables
        return found

    def ranks(self):
        """Returns {rank: process}."""
        found = {}
        for process, variables in self.processes().items():
            for variable in variables:
                name, _, value = variable.partition(b"=")
                if name in (b"TRAINER_WORLD", b"OMPI_COMM_WORLD_RANK"):
                    found[int(value.split(b":")[0])] = process
        return found

    def wait_for_rank(self, rank):
        """Returns the rank's process, or None if the run ends before it starts one."""
        while self.process.poll() is None:
            process = self.ranks().get(rank)
            if process:
                return process
        return None

    def kill(self):
        """Kills all processes of the run, repeatedly, until none is left."""
        while True:
            processes = self.processes()
            if not processes:
                return
            for process in processes:
                send(process, signal.SIGKILL)

    def require_no_orphans(self):
        end = time.monotonic() + 10
        while self.processes():
            require(time.monotonic() < end, f"left the processes {sorted(self.processes())}")
            time.sleep(0.05)


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass  # the process has ended
