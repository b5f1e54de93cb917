"""The steps of check.py. Each is a function that fills a Result, with what it needs and its time."""

import concurrent.futures
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import losses
from bundle import TESTS, sanitizer
from generated import BATCHES, Job, run

SHARDS = {"layers_test": 4, "net_test": 2, "solver_test": 3, "backend_test": 2}
LOST = re.compile(r"^\s+(/\S+)|=> (\S+)", re.MULTILINE)


def self_contained(bundle, result, seconds):
    """Every library that the programs load comes from the bundle, but for the C library's own."""
    ldd = shutil.which("ldd")
    programs = [bundle.trainer, *sorted((bundle.root / "tests").glob("*_test"))]
    for program in programs if ldd else ():
        text = subprocess.run([ldd, program], text=True, capture_output=True, timeout=seconds,
                              check=False).stdout
        outside = [path for pair in LOST.findall(text) for path in pair
                   if path and not path.startswith(str(bundle.root))
                   and not re.search(r"/(lib(c|m|dl|rt|pthread|resolv)|ld-linux[-\w]*)\.so", path)]
        result.check(not outside and "not found" not in text,
                     f"{program.name} loads {', '.join(outside) or 'what is not there'}")
    done = subprocess.run([bundle.trainer, "--version"], env={}, cwd=bundle.folder, timeout=seconds,
                          text=True, capture_output=True, check=False)
    result.check(done.returncode == 0, f"with an empty environment: {done.stderr.strip()}")


def device_query(bundle, result, seconds):
    done = subprocess.run([bundle.trainer, "device_query"], text=True, capture_output=True,
                          timeout=seconds, check=False)
    result.check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.strip()}")
    result.check(all(len(line) <= 80 for line in done.stdout.splitlines()),
                 "a line is longer than 80 columns")
    result.notes += done.stdout.splitlines()
    result.figures = bundle.query


def refusal(bundle, result, seconds):
    """Without a GPU --gpu ends with 69 and one sentence."""
    job = Job(bundle.trainer, "lenet", bundle.folder)
    done = subprocess.run(job.command(1, ["--gpu=0"]), text=True, capture_output=True,
                          timeout=seconds, check=False)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    result.check(done.returncode == 69 and len(errors) == 1, f"{done.returncode}: {done.stderr}")
    result.notes += errors


def cpu_losses(bundle, result, seconds):
    check_losses(bundle, result, seconds, ["lenet"], [])


def check_losses(bundle, result, seconds, nets, flags, loose=1.0):
    begin = time.monotonic()
    iterations = bundle.small(losses.ITERATIONS, 2)
    for name in nets:
        left = seconds - (time.monotonic() - begin)
        found = Job(bundle.trainer, name, bundle.folder).losses(iterations, flags, left)
        good, text = losses.difference(name, found, bundle.stored[name][:iterations], loose)
        result.check(good, f"{name}: {text}")
        result.figures[name] = found
        if good:
            result.notes.append(f"{name}: {text}")


def gpu_losses(bundle, result, seconds):
    check_losses(bundle, result, seconds, bundle.small(BATCHES, ["lenet"]), ["--gpu=0"])


def gpu_losses_bf16(bundle, result, seconds):
    check_losses(bundle, result, seconds, bundle.small(BATCHES, ["lenet"]),
                 ["--gpu=0", "--set", "default_forward_type=BFLOAT16"], loose=10)


def gpu_losses_f16(bundle, result, seconds):
    check_losses(bundle, result, seconds, bundle.small(BATCHES, ["lenet"]),
                 ["--gpu=0", "--set", "default_forward_type=FLOAT16"], loose=10)


def run_shard(bundle, program, shard, shards, timeout):
    """(tests, failures, skipped, names of the failed), as GoogleTest counts them."""
    report = bundle.folder / f"{program}_{shard}.json"
    done = subprocess.run(
        [bundle.root / "tests" / program, f"--gtest_output=json:{report}", "--gtest_brief=1"],
        cwd=bundle.root, timeout=timeout, text=True, capture_output=True, check=False,
        env=bundle.environment(TRAINER_TEST_DEVICE="gpu", GTEST_TOTAL_SHARDS=str(shards),
                               GTEST_SHARD_INDEX=str(shard), OMP_NUM_THREADS="2"))
    if not report.exists():
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return 0, 1, 0, [f"{program} ended with {done.returncode}: {' '.join(last)}"]
    found = json.loads(report.read_text(encoding="utf-8"))
    failed, skipped = [], 0
    for suite in found["testsuites"]:
        for test in suite["testsuite"]:
            skipped += test.get("result") == "SKIPPED"
            if "failures" in test:
                why = test["failures"][0]["failure"].splitlines()
                failed.append(f"{suite['name']}.{test['name']}: {' '.join(why)[:200]}")
    return found["tests"], len(failed), skipped, failed


def device_tests(bundle, result, seconds):
    """The tests of the layers, the backend and what uses them, on the GPU."""
    begin = time.monotonic()
    shards = [(program, i, SHARDS.get(program, 1)) for program in TESTS
              for i in range(SHARDS.get(program, 1))]
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        waiting = {pool.submit(run_shard, bundle, *shard,
                               max(1, seconds - (time.monotonic() - begin))): shard
                   for shard in shards}
        for done in concurrent.futures.as_completed(waiting):
            program, shard, _ = waiting[done]
            try:
                tests, failed, skipped, names = done.result()
            except subprocess.TimeoutExpired:
                tests, failed, skipped, names = 0, 1, 0, [f"{program} {shard}: no time was left"]
            result.passed += max(0, tests - failed - skipped)
            result.failed += failed
            result.skipped += skipped
            result.notes += names[:20]


def sanitized(bundle, result, seconds):
    """Some iterations of LeNet under memcheck, the reductions under racecheck."""
    job = Job(bundle.trainer, "lenet", bundle.folder)
    for tool, command in (
            ("memcheck", job.command(3, ["--gpu=0"])),
            ("racecheck", [bundle.root / "tests/backend_test", "--gtest_filter=*Sums*:*Reduce*"])):
        done = subprocess.run([sanitizer(), f"--tool={tool}", "--error-exitcode=99", *command],
                              cwd=bundle.root, text=True, capture_output=True, timeout=seconds / 2,
                              env=bundle.environment(TRAINER_TEST_DEVICE="gpu"), check=False)
        text = done.stdout + done.stderr
        found = [line for line in text.splitlines() if line.startswith("=========")]
        result.check(done.returncode == 0, f"{tool}: {' '.join(found[-6:])[:600]}")


def weights_after(bundle, name, iterations, flags, seconds):
    """The bytes of LeNet's weights after some iterations."""
    folder = bundle.folder / name
    folder.mkdir()
    job = Job(bundle.trainer, "lenet", bundle.folder)
    command = job.command(iterations, flags) + ["--set", f"snapshot_prefix={folder}/net", "--set",
                                                "snapshot_after_train=true", "--set",
                                                f"snapshot={iterations // 2}"]
    run(command, seconds)
    return (folder / f"net_iter_{iterations}.caffemodel").read_bytes()


def repeats(bundle, result, seconds):
    """--deterministic repeats bit for bit, goes on from a snapshot so, and is the same without
    recorded passes."""
    flags, count = ["--gpu=0", "--deterministic"], bundle.small(20, 4)
    once = weights_after(bundle, "once", count, flags, seconds / 5)
    result.check(once == weights_after(bundle, "twice", count, flags, seconds / 5),
                 "two runs with --deterministic differ")
    result.check(once == weights_after(bundle, "plain", count, [*flags, "--nogpu_graph"],
                                       seconds / 5), "a run with --nogpu_graph differs")
    state = bundle.folder / f"once/net_iter_{count // 2}.solverstate"
    resumed = weights_after(bundle, "resumed", count, [*flags, f"--snapshot={state}"], seconds / 5)
    result.check(once == resumed, "a resumed run with --deterministic differs")
    weights_after(bundle, "other", count, [f"--snapshot={state}"], seconds / 5)  # on the CPU
    result.check(True, "")


def two_gpus(bundle, result, seconds):
    """LeNet on two GPUs, by NCCL and by the host: halves of a batch learn what one GPU learns."""
    job = Job(bundle.trainer, "lenet", bundle.folder)
    count = bundle.small(20, 3)
    one = job.losses(count, ["--gpu=0", "--deterministic"], seconds / 4)
    for way in ("nccl", "host"):
        flags = ["--gpu=0,1", "--deterministic", "--global_batch", f"--exchange={way}"]
        two = job.losses(count, flags, seconds / 4)
        worst = max(abs(a - b) for a, b in zip(one, two))
        result.check(len(one) == len(two) and worst < 1e-3,
                     f"--exchange={way}: losses differ by {worst}")
        result.notes.append(f"--exchange={way}: losses differ by {worst:.2g} at most")


def stops(bundle, result, seconds):
    """SIGTERM saves and ends with 75."""
    folder = bundle.folder / "stopped"
    folder.mkdir()
    job = Job(bundle.trainer, "lenet", bundle.folder)
    command = job.command(1000000, ["--gpu=0", "--set", f"snapshot_prefix={folder}/net", "--set",
                                    "snapshot_after_train=true"])
    with subprocess.Popen(command, text=True, stderr=subprocess.PIPE) as process:
        try:
            for line in process.stderr:
                if "Iteration 5 " in line:
                    break
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=seconds)
        finally:
            process.kill()
    result.check(process.returncode == 75, f"SIGTERM ended the run with {process.returncode}")
    result.check(len(list(folder.glob("*.solverstate"))) == 1, "SIGTERM left no snapshot")


def memory(bundle, result, seconds):
    """What `plan --gpu` says without the GPU, beside what it says with it."""
    for name in bundle.small(("resnet50", "googlenet"), ("cifar10_quick",)):
        job = Job(bundle.trainer, name, bundle.folder)
        job.command(1)
        solver = bundle.folder / f"{name}_solver.prototxt"
        texts = [run([bundle.trainer, "plan", f"--solver={solver}", "--json", flag], seconds / 4)
                 for flag in ("--gpu=80GiB", "--gpu=0")]
        guess, known = (json.JSONDecoder().raw_decode(text)[0]["bytes"]["values"] for text in texts)
        result.check(known / 3 < guess < 3 * known, f"{name}: planned {guess}, taken {known}")
        result.figures[name] = {"planned_bytes": guess, "taken_bytes": known}


def filling(bundle, result, seconds):
    """Algorithms measured once, what the driver tells, the largest batch, and less memory."""
    name = bundle.small("resnet50", "lenet")
    job = Job(bundle.trainer, name, bundle.folder)
    kept, watched = bundle.folder / "convolutions", bundle.folder / "watched"
    flags = ["--gpu=0", f"--gpu_cache={kept}"]
    times, texts = [], []
    for _ in range(2):
        begin = time.monotonic()
        run(job.command(1, flags), seconds / 6)
        times.append(time.monotonic() - begin)
        texts.append(kept.read_text(encoding="utf-8"))
    result.check(texts[0] == texts[1], "a second run measured convolutions again")
    result.notes.append(f"the first run took {times[0]:.1f} s, the next one {times[1]:.1f} s")
    count = bundle.small(3000, 4)
    small = Job(bundle.trainer, bundle.small("cifar10_quick", "lenet"), bundle.folder)
    run([*small.command(count, ["--gpu=0", f"--run={watched}"]), "--set",
         f"display={max(1, count // 6)}"], seconds / 6)
    told = [json.loads(line) for line in
            (watched / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    readings = [line for line in told if line["event"] == "gpu"]
    result.check(any({"busy", "watts", "memory_bytes"} <= set(line) for line in readings),
                 "the driver told nothing of the GPU")
    result.notes += [str(line) for line in readings[-1:]]
    solver = bundle.folder / f"{name}_solver.prototxt"
    for more in ([], ["--memory=8GiB"]):
        text = run([bundle.trainer, "find-batch", f"--solver={solver}", *flags, "--json",
                    f"--most={bundle.small(256, 2)}", "--seconds=10", "--iterations=3", *more],
                   seconds / 4)
        found = json.JSONDecoder().raw_decode(text[text.index("{"):])[0]
        result.check(found["largest"] > 0, f"find-batch {more}: {found}")
        result.figures["find-batch " + " ".join(more)] = found


def speed(bundle, result, seconds):
    """The table against PyTorch on the same GPU. No bound: the figures are to be read."""
    report, table = bundle.folder / "speed.json", bundle.folder / "speed.txt"
    try:
        with table.open("w", encoding="utf-8") as out:
            done = subprocess.run(
                [sys.executable, bundle.root / "scripts/gpu/speed.py",
                 f"--trainer={bundle.trainer}", f"--seconds={max(5, seconds - 20):.0f}",
                 f"--json={report}", *bundle.small([], ["--dry"])],
                text=True, stdout=out, stderr=subprocess.PIPE, timeout=seconds, check=False)
        result.check(done.returncode == 0, done.stderr.strip()[-500:])
    finally:  # what was measured counts, also where the time ran out
        result.notes += table.read_text(encoding="utf-8").splitlines()
        if report.exists():
            result.figures = json.loads(report.read_text(encoding="utf-8"))


@dataclasses.dataclass(frozen=True)
class Step:
    run: object
    seconds: float  # at most
    needs: tuple = ()

    @property
    def name(self):
        return self.run.__name__


ALL = (
    Step(self_contained, 20),
    Step(device_query, 30),
    Step(refusal, 20, ("no gpu",)),
    Step(cpu_losses, 60, ("no gpu",)),
    Step(device_tests, 130, ("gpu", "tests")),
    Step(gpu_losses, 60, ("gpu",)),
    Step(gpu_losses_bf16, 40, ("gpu",)),
    Step(gpu_losses_f16, 40, ("gpu",)),
    Step(repeats, 40, ("gpu",)),
    Step(two_gpus, 40, ("gpu", "two gpus")),
    Step(stops, 20, ("gpu",)),
    Step(memory, 30, ("gpu",)),
    Step(filling, 60, ("gpu",)),
    Step(sanitized, 60, ("gpu", "tests", "sanitizer")),
    Step(speed, 170, ("gpu", "torch")),
)
