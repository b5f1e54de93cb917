"""Steps that check the GPU's results: tests, losses, accuracies."""

import concurrent.futures
import os
import re
import shutil
import statistics
import subprocess
import time

import children
import losses
from bundle import TESTS, tool
from generated import BATCHES, Job, model, with_source
from speed import FLAGS

REASONS = 20  # failed tests of a program whose reasons are reported
SHARDS = {"layers_test": 5, "net_test": 3, "solver_test": 4, "backend_test": 3}
LOST = re.compile(r"^\s+(/\S+)|=> (\S+)", re.MULTILINE)
ENDED = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:,.*)? \(\d+ ms\)", re.MULTILINE)
ACCURACY = re.compile(r"Test net output #\d+: accuracy = ([\d.]+)")
# Tests of sums for compute-sanitizer. It leaves out those of the default settings, with which the
# libraries' kernels may add in any order, with atomics.
SUMS = "*Sums*:*Reduce*-UsualGpuTest.*"
LOOSE = {"f32": 1, "bf16": 10, "f16": 10}
# The warning of `train` about layers that neither cuDNN nor cuBLAS computes.
OWN_KERNELS = re.compile(r"own kernels on the GPU, .*? cuDNN and cuBLAS: (.*?); the first one "
                         r"because of (.*?); 'trainer device_query'")


def self_contained(bundle, result, seconds):
    """Checks that the programs load only the bundle's libraries and the C library."""
    ldd = shutil.which("ldd")
    programs = [bundle.trainer, *sorted((bundle.root / "tests").glob("*_test"))]
    for program in programs if ldd else ():
        text = children.run([ldd, program], seconds).stdout
        outside = [path for pair in LOST.findall(text) for path in pair
                   if path and not path.startswith(str(bundle.root))
                   and not re.search(r"/(lib(c|m|dl|rt|pthread|resolv)|ld-linux[-\w]*)\.so", path)]
        result.check(not outside and "not found" not in text,
                     f"{program.name} loads {', '.join(outside) or 'what is not there'}")
    done = children.run([bundle.trainer, "--version"], seconds, env={}, cwd=bundle.folder)
    result.check(done.returncode == 0, f"with an empty environment: {done.stderr.strip()}")


def device_query(bundle, result, seconds):
    done = children.run([bundle.trainer, "device_query"], seconds)
    result.check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.strip()}")
    result.check(all(len(line) <= 80 for line in done.stdout.splitlines()),
                 "a line is longer than 80 columns")
    result.detail("lines", done.stdout.splitlines())
    for missing in bundle.query.get("cuda", {}).get("missing", ()) if bundle.gpus else ():
        result.fail(missing)  # else its own, slower kernels would silently replace the library


def refusal(bundle, result, seconds):
    """Checks that --gpu without a GPU exits with code 69 and one error line."""
    done = children.run(Job(bundle.data, "lenet").command(1, ["--gpu=0"]), seconds)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    result.check(done.returncode == 69 and len(errors) == 1, f"{done.returncode}: {done.stderr}")
    for line in errors:
        result.note(line)


def cpu_losses(bundle, result, seconds):
    compare_losses(bundle, result, seconds, [("lenet", "cpu")])


def gpu_losses(bundle, result, seconds):
    """Compares the losses of five nets in three types with the CPU's in f32."""
    nets = bundle.small(list(BATCHES), ["lenet"])
    compare_losses(bundle, result, seconds, [(net, mode) for mode in FLAGS for net in nets])


def for_each_run(result, runs, start, finish):
    """Calls finish(net, mode, start(net, mode)) for each run that does not fail. Several run at
    once, because such short runs spend most of their time on the host."""
    with children.threads(min(4, (os.cpu_count() or 2) // 2)) as pool:
        waiting = {pool.submit(start, *key): key for key in runs}
        for done in concurrent.futures.as_completed(waiting):
            net, mode = waiting[done]
            try:
                found = done.result()
            except subprocess.TimeoutExpired:
                result.cut(f"{net} {mode}: no time was left")
            except RuntimeError as error:
                result.fail(f"{net} {mode}: {error}")
            else:
                finish(net, mode, found)


def libraries(bundle, result, seconds):
    """Checks that cuDNN and cuBLAS compute all convolutions and products of five nets in three
    types with default settings, forward and backward."""
    end = time.monotonic() + seconds
    nets = bundle.small(list(BATCHES), ["lenet"])
    runs = [(net, mode) for mode in FLAGS for net in nets]
    jobs = {(net, mode): Job(bundle.data, net, f"_default_{mode}") for net, mode in runs}

    def start(net, mode):
        command = jobs[net, mode].command(bundle.small(3, 1), ["--gpu=0", *FLAGS[mode]])
        return children.run_well(command, end - time.monotonic())

    def finish(net, mode, text):
        own = OWN_KERNELS.search(text)
        result.check(own is None, own and f"{net} {mode}: no library computes {own[1]} ({own[2]})")

    for_each_run(result, runs, start, finish)


def compare_losses(bundle, result, seconds, runs):
    end = time.monotonic() + seconds
    count = bundle.small(losses.ITERATIONS, 2)
    jobs = {(net, mode): Job(bundle.data, net, f"_{mode}") for net, mode in runs}

    def start(net, mode):
        flags = ["--gpu=0", *FLAGS[mode]] if mode in FLAGS else []
        return jobs[net, mode].losses(count, flags, end - time.monotonic())

    def finish(net, mode, found):
        good, text = losses.difference(net, found, bundle.stored[net][:count], LOOSE.get(mode, 1))
        result.check(good, f"{net} {mode}: {text}")
        result.detail(f"{net} {mode}", {"agrees": good, "said": text, "losses": found})

    for_each_run(result, runs, start, finish)


def run_shard(bundle, program, shard, timeout):
    """Runs a shard of a program's tests. Returns its output and exit code (None: timeout)."""
    shards = SHARDS.get(program, 1)
    out = bundle.folder / f"{program}_{shard}.txt"
    env = bundle.environment(TRAINER_TEST_DEVICE="gpu", GTEST_TOTAL_SHARDS=str(shards),
                             GTEST_SHARD_INDEX=str(shard), OMP_NUM_THREADS="2", GTEST_COLOR="no")
    with out.open("wb") as file:
        process = children.start([bundle.root / "tests" / program], cwd=bundle.root, env=env,
                                 stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        try:
            code = process.wait(timeout=max(0.1, timeout))
        except subprocess.TimeoutExpired:
            children.interrupt(process)
            code = None
        finally:
            children.end(process)
    return out.read_text(encoding="utf-8", errors="replace"), code


def said(text, test):
    """Returns what a test that failed or was skipped printed, on one line."""
    own = text.split(f"[ RUN      ] {test}\n", 1)[-1]
    end = re.search(r"^\[ +(?:FAILED|SKIPPED) +\]", own, re.MULTILINE)
    return " ".join(own[:end.start()].split())


def count_tests(result, name, text, code):
    """Counts the finished tests, even if the program did not finish. Returns {reason: the tests
    that were skipped for it}."""
    told = dict((test, verdict) for verdict, test in ENDED.findall(text))
    count = {verdict: sum(found == verdict for found in told.values())
             for verdict in ("OK", "FAILED", "SKIPPED")}
    result.count(count["OK"], count["FAILED"], count["SKIPPED"])
    failed = [test for test, verdict in told.items() if verdict == "FAILED"]
    for test in failed[:REASONS]:
        result.note(f"{test}: {said(text, test)[:300]}")
    if more := failed[REASONS:]:
        result.note(f"{name}: {len(more)} more failed: " + ", ".join(f"'{test}'" for test in more))
    running = " ".join(re.findall(r"^\[ RUN +\] (\S+)", text, re.MULTILINE)[-1:])
    if code is None:
        result.cut(f"{name}: no time was left after {len(told)} tests, in {running}")
    elif code not in (0, 1) or not told:
        last = " ".join(text.split("\n")[-4:]).strip()[-300:]
        result.fail(f"{name} ended with {code} in {running}: {last}")
    skipped = {}
    for test in (test for test, verdict in told.items() if verdict == "SKIPPED"):
        skipped.setdefault(said(text, test).rpartition(": Skipped ")[2], []).append(test)
    result.detail(f"{name}, skipped", skipped)
    return skipped


def device_tests(bundle, result, seconds):
    """Runs the tests of the backend, the layers, optim, net and the solver on the GPU. Tests that
    only a CPU can run are expected to be skipped, so only the details name them."""
    skipped = {}
    end = time.monotonic() + seconds
    shards = [(program, i) for i in range(max(SHARDS.values())) for program in TESTS
              if i < SHARDS.get(program, 1) and (bundle.root / "tests" / program).exists()]
    with children.threads(max(2, (os.cpu_count() or 2) // 2)) as pool:
        waiting = {pool.submit(lambda shard: run_shard(bundle, *shard, end - time.monotonic()),
                               shard): shard for shard in shards}
        for done in concurrent.futures.as_completed(waiting):
            program, shard = waiting[done]
            for why, tests in count_tests(result, f"{program} {shard}", *done.result()).items():
                skipped.setdefault(why, []).extend(tests)
    for why, tests in skipped.items():  # after all failures
        if not why.startswith("about the CPU alone"):
            result.note(f"skipped, {why}: " + ", ".join(f"'{test}'" for test in tests))


def sanitizer_flags(help_text):
    """Returns flags of compute-sanitizer that skip the libraries' kernels and do not report API
    errors, because the program expects some. `help_text` is the output of --help: older versions
    have another name for the filter, or do not report API errors."""
    name = "--kernel-regex" if "kernel-regex" in help_text else "--filter"
    calls = ["--report-api-errors", "no"] if "report-api-errors" in help_text else []
    return ["--error-exitcode=99", name, "kns=trainer", *calls]


def sanitized(bundle, result, seconds):
    """Runs LeNet under memcheck, and tests of sums under racecheck and synccheck."""
    sums = [bundle.root / "tests/backend_test", f"--gtest_filter={SUMS}"]
    lenet = Job(bundle.data, "lenet", "_checked").command(3, ["--gpu=0", "--deterministic"])
    runs = {"memcheck": lenet, "racecheck": sums, "synccheck": sums}
    program = tool("compute-sanitizer")
    flags = sanitizer_flags(children.run([program, "--help"], seconds).stdout)

    def run(name, command):
        return children.run([program, f"--tool={name}", *flags, *command], seconds,
                            cwd=bundle.root, env=bundle.environment(TRAINER_TEST_DEVICE="gpu"))

    with children.threads(len(runs)) as pool:
        waiting = {pool.submit(run, *item): item[0] for item in runs.items()}
        for done in concurrent.futures.as_completed(waiting):
            name = waiting[done]
            try:
                ended = done.result()
            except subprocess.TimeoutExpired:
                result.cut(f"{name}: no time was left")
                continue
            found = [line for line in (ended.stdout + ended.stderr).splitlines()
                     if line.startswith("=========")]
            result.check(ended.returncode == 0, f"{name}: {' '.join(found[-6:])[:600]}")


def cifar10_sets(bundle):
    """Returns (training set, test set, mean, test images): the given images, or digits with a
    training set so small that some answers are wrong."""
    if bundle.cifar10 is None:
        folder = bundle.data.digits(*bundle.small((2000, 5000), (200, 100)))
        sets, tests = [folder / "train_lmdb", folder / "test_lmdb"], bundle.small(5000, 100)
    else:
        sets = [bundle.folder / "cifar10_train", bundle.folder / "cifar10_test"]
        for part, to in zip(("train", "test"), sets):
            if not to.exists():
                bundle.data.dataset("convert", bundle.cifar10 / f"{part}.tar", to)
        tests = 1000
    mean = bundle.folder / "accuracy_mean.binaryproto"
    bundle.data.dataset("mean", sets[0], mean)
    return (*sets, mean, tests)


def accuracy(bundle, result, seconds):
    """Checks that cifar10_quick's mean accuracy over several seeds agrees in three types."""
    end = time.monotonic() + seconds
    train, test, mean, tests = cifar10_sets(bundle)
    batch = bundle.small(100, 4)
    text = with_source(model("cifar10_quick"), train, batch, mean)
    first, second = text.rsplit(str(train), 1)
    net = bundle.folder / "accuracy.prototxt"
    net.write_text(first + str(test) + second, encoding="utf-8")
    count = bundle.small(5000, 2)
    settings = [f"net={net}", f"max_iter={count}", f"test_iter={bundle.small(tests // batch, 1)}",
                f"test_interval={count}", "test_initialization=false", "snapshot=0",
                "snapshot_after_train=false", f"stepvalue={count * 4 // 5}"]
    solver = bundle.root / "models/cifar10_quick/solver.prototxt"

    def run(mode, seed):
        folder = bundle.folder / f"accuracy_{mode}_{seed}"
        folder.mkdir(exist_ok=True)
        command = [bundle.trainer, "train", f"--solver={solver}", "--gpu=0", *FLAGS[mode]]
        for setting in [*settings, f"snapshot_prefix={folder}/net", f"random_seed={seed}"]:
            command += ["--set", setting]
        return float(ACCURACY.findall(children.run_well(command, end - time.monotonic()))[-1])

    found = {mode: [] for mode in FLAGS}
    with children.threads(min(6, (os.cpu_count() or 2) // 2)) as pool:
        waiting = {pool.submit(run, mode, seed): mode
                   for seed in range(1, bundle.small(5, 2)) for mode in FLAGS}
        for done in concurrent.futures.as_completed(waiting):
            try:
                found[waiting[done]].append(100 * done.result())
                result.check(True, "")
            except subprocess.TimeoutExpired:
                result.cut("no time was left for all seeds")
            except RuntimeError as error:
                result.fail(str(error))
    result.detail("percent", found)
    for mode, percents in found.items():
        if percents:
            result.measure(f"cifar10_quick {mode}, mean of {len(percents)}",
                           statistics.mean(percents), "% right")
    for mode in ("bf16", "f16"):
        if found[mode] and found["f32"]:
            off = statistics.mean(found[mode]) - statistics.mean(found["f32"])
            result.measure(f"cifar10_quick {mode} against f32", off, "points", least=-0.5)
