"""Finds programs, data and space for the steps of check.py, and describes the machine."""

import ctypes
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile

import children
import losses
from generated import Data

TESTS = ("backend_test", "layers_test", "optim_test", "net_test", "solver_test")
WANTED_ROOM = 2 << 30  # bytes for generated data


class Bundle:
    def __init__(self, root, folder, args):
        """`folder` is for temporary files; `args` are check.py's arguments."""
        self.root, self.folder, self.dry = root, folder, args.dry
        self.trainer = args.trainer.resolve() if args.trainer else root / "trainer"
        self.stored = losses.read(root / "scripts/gpu/losses.txt")
        self.data = Data(self.trainer, folder)
        self.rates = {}  # (net, mode): images/s from memory, as the step `speed` measured them
        self.peers = None  # PyTorch's processes, while they run
        self.cifar10 = args.cifar10
        self.python = None if args.python == "none" else args.python
        self.put_result = lambda name, text: None  # writes a file to the report's folder
        # The program looks for PyTorch's cuDNN and cuBLAS there.
        os.environ["VIRTUAL_ENV"] = prefix_of(self.python)
        # Private caches, so that other programs do not use what is measured or compiled here.
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")

    @functools.cached_property
    def query(self):
        """The report of `trainer device_query`; {} if it fails. The first use starts the program
        and may take long, so it must be within a step."""
        self.__dict__["query"] = {}  # remains if the step is ended during the query
        try:
            done = children.run([self.trainer, "device_query", "--json"], 20)
            return json.loads(done.stdout) if done.returncode == 0 else {}
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return {}

    def small(self, usual, dry):
        """Returns the normal value, or with --dry the small one that only shows that the step works."""
        return dry if self.dry else usual

    @property
    def gpus(self):
        return self.query.get("gpus", [])

    def may_run(self, needs):
        """Returns whether a step with these needs may run here; True before the first query."""
        return "query" not in self.__dict__ or not self.lacks(needs)

    def lacks(self, needs):
        """Returns why a step with these needs cannot run here, or ''."""
        if "gpu" in needs and not self.gpus:
            missing = self.query.get("cuda", {}).get("missing", ["trainer device_query failed"])
            return " ".join(missing) or "there is no GPU"
        if "two gpus" in needs and len(self.gpus) < 2:
            return "there is one GPU only"
        if "no gpu" in needs and self.gpus:
            return "there is a GPU"
        if "tests" in needs and not (self.root / "tests" / TESTS[0]).exists():
            return "the bundle has no test programs"
        if "ncu" in needs and (self.dry or not tool("ncu")):
            return "there is no ncu of the CUDA toolkit"
        if "sanitizer" in needs and not tool("compute-sanitizer"):
            return "there is no compute-sanitizer of the CUDA toolkit"
        return ""

    def environment(self, **more):
        return {**os.environ, "TRAINER_SOURCE_DIR": str(self.root), **more}

    def used_memory(self):
        """Returns the bytes of used GPU memory, or None if the driver does not report them."""
        return used_memory(self.gpus[0]["pci_bus"]) if self.gpus else None


def prefix_of(python):
    """Returns sys.prefix of `python`, or of this Python if `python` is missing or fails."""
    if python is None or shutil.which(python) is None:
        return sys.prefix
    try:
        done = children.run([python, "-c", "import sys; print(sys.prefix)"], 20)
    except (OSError, subprocess.TimeoutExpired):
        return sys.prefix
    return done.stdout.strip() if done.returncode == 0 else sys.prefix


def tool(name):
    """Returns the path of a program of the CUDA toolkit, or None."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def roomy_folder(wanted=WANTED_ROOM):
    """Returns a folder for temporary files: the first with enough room, else the roomiest."""
    folders = []
    for name in (os.environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm", os.getcwd()):
        if not name or not os.access(name, os.W_OK | os.X_OK):
            continue
        free = shutil.disk_usage(name).free
        if free >= wanted:
            return name
        folders.append((free, name))
    return max(folders)[1] if folders else tempfile.gettempdir()


class _Memory(ctypes.Structure):  # nvmlMemory_t
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def used_memory(pci_bus):
    """Returns the used bytes of the GPU at this PCI address from NVML, or None."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        handle, memory = ctypes.c_void_p(), _Memory()
        if (nvml.nvmlInit_v2() or
                nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus.encode(), ctypes.byref(handle)) or
                nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))):
            return None
    except (OSError, AttributeError):
        return None
    return memory.used
