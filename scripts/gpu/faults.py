"""Steps about runs that repeat, stop, resume and fail."""

import concurrent.futures
import signal
import subprocess
import time

import children
from generated import Job
from speed import FLAGS


def saving(bundle, job, iterations, flags, prefix):
    """Returns a command that saves half-way and at the end."""
    return [*job.command(iterations, flags), "--set", f"snapshot_prefix={prefix}", "--set",
            "snapshot_after_train=true", "--set", f"snapshot={iterations // 2}"]


def weights_after(bundle, name, iterations, flags, end):
    """Returns the bytes of LeNet's weights after some iterations."""
    job = Job(bundle.data, "lenet", f"_{name}")
    children.run_well(saving(bundle, job, iterations, flags, job.folder / "net"),
                      end - time.monotonic())
    return (job.folder / f"net_iter_{iterations}.caffemodel").read_bytes()


def repeats(bundle, result, seconds):
    """Checks that --deterministic repeats and resumes bit for bit, also without CUDA graphs."""
    end, count = time.monotonic() + seconds, bundle.small(20, 4)
    flags = ["--gpu=0", "--deterministic"]
    state = bundle.folder / f"lenet_once/net_iter_{count // 2}.solverstate"
    with children.threads(3) as pool:
        runs = {name: pool.submit(weights_after, bundle, name, count, [*flags, *more], end)
                for name, more in (("once", []), ("twice", []), ("plain", ["--nogpu_graph"]))}
        once = runs["once"].result()
        resumed = pool.submit(weights_after, bundle, "resumed", count,
                              [*flags, f"--snapshot={state}"], end)
        result.check(once == runs["twice"].result(), "two runs with --deterministic differ")
        result.check(once == runs["plain"].result(), "a run with --nogpu_graph differs")
        result.check(once == resumed.result(), "a resumed run with --deterministic differs")


def other_device(bundle, result, seconds):
    """Checks that a snapshot of the GPU in f16 resumes on the CPU in f32, and the reverse."""
    end, count = time.monotonic() + seconds, bundle.small(20, 4)
    sides = {"gpu": ["--gpu=0", *FLAGS["f16"]], "cpu": []}
    for first, then in (("gpu", "cpu"), ("cpu", "gpu")):
        weights_after(bundle, f"from_{first}", count, sides[first], end)
        state = bundle.folder / f"lenet_from_{first}/net_iter_{count // 2}.solverstate"
        job = Job(bundle.data, "lenet", f"_then_{then}")
        done = children.run(job.command(count, [*sides[then], f"--snapshot={state}"]),
                            end - time.monotonic())
        result.check(done.returncode == 0, f"{first} to {then}: {done.stderr.strip()[-300:]}")
        said = [line.split("] ", 1)[-1] for line in done.stderr.splitlines()
                if "snapshot's run" in line]
        result.check(said, f"{first} to {then}: nothing was said of the other run's loss scale")
        for line in said:
            result.note(f"{first} to {then}: {line}")


def two_gpus(bundle, result, seconds):
    """Checks that LeNet on two GPUs, by NCCL and by the host, has the losses of one GPU."""
    end, job = time.monotonic() + seconds, Job(bundle.data, "lenet", "_two")
    count = bundle.small(20, 3)
    one = job.losses(count, ["--gpu=0", "--deterministic"], seconds)
    for way in ("nccl", "host"):
        flags = ["--gpu=0,1", "--deterministic", "--global_batch", f"--exchange={way}"]
        two = job.losses(count, flags, end - time.monotonic())
        worst = max(abs(a - b) for a, b in zip(one, two))
        result.check(len(one) == len(two) and worst < 1e-3,
                     f"--exchange={way}: losses differ by {worst}")
        result.note(f"--exchange={way}: losses differ by {worst:.2g} at most")


def stops(bundle, result, seconds):
    """Checks that SIGTERM saves and exits with code 75."""
    job = Job(bundle.data, "lenet", "_stopped")
    command = [*job.command(1000000, ["--gpu=0"]), "--set", "snapshot_after_train=true"]
    process = children.start(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for line in process.stderr:
            if bundle.small("Iteration 5 ", "Iteration 1 ") in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=seconds)
    finally:
        children.end(process)
    result.check(process.returncode == 75, f"SIGTERM ended the run with {process.returncode}")
    result.check(len(list(job.folder.glob("*_iter_*.solverstate"))) == 1, "SIGTERM left no snapshot")


def faults(bundle, result, seconds):
    """Checks that errors exit with their code and one line, and do not leave a snapshot."""
    huge, few = bundle.small(2000000, 200000), "layer[ip2].inner_product_param.num_output=3"
    cases = {"a GPU that is not there": (69, ["--gpu=63"]),
             "labels that no output has": (65, ["--set", few]),
             "a loss that is not finite": (80, ["--set", "base_lr=1e30"]),
             "more than the memory": (81, [f"--batch={huge}"])}

    def run(name, flags):
        job = Job(bundle.data, "lenet", f"_fault{sorted(cases).index(name)}")
        given = [] if flags[0].startswith("--gpu") else ["--gpu=0"]
        done = children.run([*job.command(20, [*given, *flags]), "--set",
                             "snapshot_after_train=true"], seconds)
        return done, list(job.folder.glob("*_iter_*.solverstate"))

    with children.threads(len(cases)) as pool:
        waiting = {pool.submit(run, name, case[1]): name for name, case in cases.items()}
        for ended in concurrent.futures.as_completed(waiting):
            name, (done, states) = waiting[ended], ended.result()
            said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            result.check(done.returncode == cases[name][0] and len(said) == 1 and not states,
                         f"{name}: {done.returncode}, {said}, {states}: {done.stderr[-300:]}")
            for line in said:
                result.note(f"{name}: {line[:300]}")
