"""Times training steps of trainer and of PyTorch alternately; shared by the scripts in this
folder.
"""

import dataclasses
import itertools
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATE_LINE = re.compile(r"Iteration (\d+) \(([\d.e+-]+) iter/s")
ACCURACY = re.compile(r"Test net output #\d+: accuracy = ([\d.]+)")
PEAK_LINE = re.compile(r"VmHWM:\s*(\d+) kB")


class Trainer:
    """Runs the binary and reads its logged steps per second after the first `warm_up` steps."""

    def __init__(self, binary, solver, warm_up, flags=()):
        self.command = [str(pathlib.Path(binary).resolve()), "train", f"--solver={solver}", *flags]
        self.warm_up = warm_up

    def milliseconds(self):
        done = subprocess.run(self.command, text=True, capture_output=True, check=False)
        self.check(done.returncode, done.stderr)
        rates = [float(rate) for iteration, rate in RATE_LINE.findall(done.stdout + done.stderr)
                 if int(iteration) > self.warm_up]
        if not rates:
            sys.exit("trainer printed no 'Iteration N (x iter/s, ...)' line")
        return 1000 / statistics.median(rates)

    def peak_mib(self, log):
        """Returns the peak memory of one run in MiB. Its messages go to the file `log`."""
        peak = 0
        with open(log, "w", encoding="utf-8") as messages:
            with subprocess.Popen(self.command, stdout=messages, stderr=messages) as process:
                while process.poll() is None:
                    peak = max(peak, peak_mib(process.pid))
                    time.sleep(0.01)
        self.check(process.returncode, pathlib.Path(log).read_text(encoding="utf-8"))
        return peak

    @staticmethod
    def check(status, messages):
        if status != 0:
            sys.exit(f"trainer failed with status {status}:\n{messages[-2000:]}")


def peak_mib(pid="self"):
    """Returns a process's largest resident set so far in MiB, or 0 if it has just ended."""
    try:
        found = PEAK_LINE.search(pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) / 1024 if found else 0


@dataclasses.dataclass
class Setting:
    """How PyTorch runs a net."""
    threads: int
    channels_last: bool = False
    compiled: bool = False
    bf16: bool = False

    def __str__(self):
        return (f"{self.threads} thread{'s' if self.threads > 1 else ''}, "
                f"{'channels_last' if self.channels_last else 'NCHW'}"
                f"{', compiled' if self.compiled else ''}{', bf16' if self.bf16 else ''}")

    def layout(self):
        return torch.channels_last if self.channels_last else torch.contiguous_format


class Peer:
    """A module that maps (data, label) to a loss, at one setting.

    `groups(module)` makes the optimizer's groups; `rates(iteration)` their rates, if these change.
    """

    def __init__(self, setting, module, batches, groups, rates=None, **sgd):
        self.setting, self.rates, self.iteration = setting, rates, 0
        module = module.to(memory_format=setting.layout())
        self.batches = [(data.to(memory_format=setting.layout()), label) for data, label in batches]
        self.optimizer = make_sgd(groups(module), **sgd)
        self.module = torch.compile(module) if setting.compiled else module

    def step(self, data, label):
        for group, rate in zip(self.optimizer.param_groups,
                               self.rates(self.iteration) if self.rates else ()):
            group["lr"] = rate
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.setting.bf16):
            loss = self.module(data, label)
        loss.backward()
        self.optimizer.step()
        self.iteration += 1

    def milliseconds(self, steps):
        torch.set_num_threads(self.setting.threads)
        begin = time.perf_counter()
        for data, label in itertools.islice(itertools.cycle(self.batches), steps):
            self.step(data, label)
        return (time.perf_counter() - begin) * 1000 / steps


def make_sgd(groups, **options):
    try:
        return torch.optim.SGD(groups, fused=True, **options)
    except (RuntimeError, TypeError):
        return torch.optim.SGD(groups, **options)


def settings(compiled, bf16=False, one_thread=True):
    """Returns all settings that may be the fastest."""
    threads = sorted({1, cores()} if one_thread else {cores()})
    return [Setting(*values, bf16) for values in
            itertools.product(threads, (False, True), [False, True] if compiled else [False])]


def best_peer(make_peer, candidates, steps):
    """Tries every setting, warmed up, and keeps the fastest."""
    best = None
    for setting in candidates:
        peer = make_peer(setting)
        peer.milliseconds(min(steps, 2))
        found = statistics.median(peer.milliseconds(steps) for _ in range(3))
        print(f"  PyTorch, {setting}: {found:.2f} ms", flush=True)
        if best is None or found < best[0]:
            best = (found, peer)
    return best[1]


def alternate(ours, peer, steps, rounds):
    """Times trainer and PyTorch alternately (PyTorch alone without `ours`). Returns the figures."""
    trainer_times, peer_times = [], []
    for _ in range(rounds):
        if ours:
            trainer_times.append(ours.milliseconds())
        peer_times.append(peer.milliseconds(steps))
    figures = {"pytorch": str(peer.setting), "pytorch_ms": peer_times}
    print(f"  PyTorch, {peer.setting}: {describe(peer_times)}")
    if ours:
        ratio = statistics.median(trainer_times) / statistics.median(peer_times)
        figures |= {"trainer_ms": trainer_times, "time_ratio": ratio}
        print(f"  trainer: {describe(trainer_times)}")
        print(f"  trainer takes {ratio:.2f} of PyTorch's time")
    return figures


def cifar_net(binary, model, files, folder, flags=()):
    """Writes a model's net that reads CIFAR-10's binary files, and their LMDB if it is missing."""
    if not (folder / "data").exists():
        subprocess.run([binary, "dataset", "cifar10", str(files), str(folder / "data"), *flags],
                       check=True, capture_output=True)
    text = (model / "train_test.prototxt").read_text().replace("data/cifar10/", f"{folder}/data/")
    (folder / "net.prototxt").write_text(text)
    return folder / "net.prototxt"


def trained_accuracy(binary, solver, settings, flags=()):
    """Trains with `settings` for --set and returns the accuracy of the last test."""
    command = [binary, "train", f"--solver={solver}", *flags]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    Trainer.check(done.returncode, done.stderr)
    found = ACCURACY.findall(done.stdout + done.stderr)
    if not found:
        sys.exit(f"trainer printed no accuracy:\n{done.stderr[-2000:]}")
    return float(found[-1])


def describe(times):
    return (f"median {statistics.median(times):.2f} ms "
            f"({min(times):.2f} to {max(times):.2f} over {len(times)} rounds)")


def cores():
    return len(os.sched_getaffinity(0))


def limit_isa(isa):
    """Starts the script again with trainer and PyTorch both limited to the instructions `isa`.

    Their libraries read these variables when they start. torch.compile reads ATEN's.
    """
    limits = {"avx2": {"DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                       "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}}
    missing = {name: value for name, value in limits.get(isa, {}).items()
               if os.environ.get(name) != value}
    if missing:
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | missing)


def machine():
    limit = os.environ.get("DNNL_MAX_CPU_ISA")
    limited = f", limited to {limit}" if limit else ""
    return f"{cores()} cores of {processor()}{limited}, torch {torch.__version__}"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def write_json(path, figures):
    figures = figures | {"torch": torch.__version__, "processor": processor()}
    pathlib.Path(path).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
