"""Checks whether input keeps up with the GPU, and how much of its memory is used."""

import json
import time

import children
from generated import Job
from speed import FLAGS, ROWS, OurNet

RECORDS = 1024
SMALL_ROW = next(row for row in ROWS if row.net == "cifar10_quick")


def fed(bundle, result, seconds):
    """Compares ResNet-50's speed on an LMDB of pixels and on JPEG files, which the host decodes,
    with its speed on a batch that stays on the GPU."""
    end = time.monotonic() + seconds
    row = bundle.small(ROWS[0], SMALL_ROW)
    count, size = bundle.small((RECORDS, 256), (4, 32))

    def rate(source=None):
        net = OurNet(bundle, row, source)
        return 1000 * net.batch / net.milliseconds(bundle.small(8, 1), left(end))

    memory = bundle.rates.get(row.key)
    if not memory:
        memory = rate()
        result.measure(f"{row} from memory", memory, "images/s")
    for name, make, least in (("an LMDB of pixels", bundle.data.pixels, 0.97),
                              ("JPEG files", bundle.data.jpegs, None)):
        found = rate(make(count, size))
        result.check(True, "")
        result.measure(f"{row} from {name}", found / memory, "of the rate from memory", least=least)


def filling(bundle, result, seconds):
    """Checks that algorithms are measured once, the driver's readings, plans and find-batch."""
    end = time.monotonic() + seconds
    measured_once(bundle, result, end)
    driver_tells(bundle, result, end)
    plans(bundle, result, end)
    largest_batch(bundle, result, end)


def left(end):
    return end - time.monotonic()


def measured_once(bundle, result, end):
    job = Job(bundle.data, bundle.small("cifar10_quick", "lenet"), "_once")
    kept = bundle.folder / "convolutions"
    times, texts = [], []
    for _ in range(2):
        begin = time.monotonic()
        children.run_well(job.command(1, ["--gpu=0", f"--gpu_cache={kept}"]), left(end))
        times.append(time.monotonic() - begin)
        texts.append(kept.read_text(encoding="utf-8"))
    result.check(texts[0] == texts[1], "a second run measured convolutions again")
    result.note(f"{job.name}: the first run took {times[0]:.1f} s, the next one {times[1]:.1f} s")


def driver_tells(bundle, result, end):
    job = Job(bundle.data, bundle.small("cifar10_quick", "lenet"), "_watched")
    watched, count = bundle.folder / "watched", bundle.small(3000, 4)
    children.run_well([*job.command(count, ["--gpu=0", f"--run={watched}"]), "--set",
                       f"display={max(1, count // 6)}"], left(end))
    lines = (watched / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    readings = [told for told in map(json.loads, lines) if told["event"] == "gpu"]
    result.check(bundle.dry or
                 any({"busy", "watts", "memory_bytes"} <= set(told) for told in readings),
                 "the driver told nothing of the GPU")
    for told in readings[-1:]:
        result.note(str(told))


def plans(bundle, result, end):
    """Compares the bytes that `plan --gpu` prints without the GPU and with the GPU."""
    job = Job(bundle.data, bundle.small("resnet50", "cifar10_quick"), "_planned")
    texts = [children.run_well([bundle.trainer, "plan", f"--solver={job.solver}", "--json", flag],
                               left(end)) for flag in ("--gpu=80GiB", "--gpu=0")]
    guess, known = (json.JSONDecoder().raw_decode(text)[0]["bytes"]["values"] for text in texts)
    result.check(known / 3 < guess < 3 * known, f"{job.name}: planned {guess}, taken {known}")
    result.detail("plan", {"planned_bytes": guess, "taken_bytes": known})


def largest_batch(bundle, result, end):
    job = Job(bundle.data, bundle.small("resnet50", "lenet"), "_filled")
    for more in ([], ["--memory=8GiB"]):
        text = children.run_well(
            [bundle.trainer, "find-batch", f"--solver={job.solver}", "--gpu=0", *FLAGS["f16"],
             "--json", f"--most={bundle.small(256, 2)}", "--seconds=4", "--iterations=3", *more],
            left(end))
        found = json.JSONDecoder().raw_decode(text[text.index("{"):])[0]
        result.check(found["largest"] > 0, f"find-batch {more}: {found}")
        result.measure(f"largest batch of {job.name}, at most 256 {' '.join(more)}".rstrip(),
                       found["largest"], "images")
        result.detail("find-batch " + " ".join(more), found)
