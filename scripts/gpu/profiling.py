"""Steps that measure where a training step spends its time: per layer with `trainer time`, per
kernel with ncu.
"""

import collections
import csv
import json
import subprocess
import time

import children
from bundle import tool
from speed import DRY_ROWS, ROWS, OurNet

LAYERS = 12  # to list of each net
METRICS = {"gpu__time_duration.sum": "ns",
           "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram"}
FIRST_KERNELS = 700  # kernels that ncu skips: a step of ResNet-50 has about 650
KERNELS = 150


def profile(bundle, result, seconds):
    """Compares the layer times of the large nets in f16 with the time to move their bytes."""
    end = time.monotonic() + seconds
    text = []
    for row in bundle.small([row for row in ROWS if row.mode == "f16" and row.batch >= 128],
                            DRY_ROWS[:1]):
        net = OurNet(bundle, row)
        told = children.run_well(
            [bundle.trainer, "time", f"--solver={net.solver(1)}", *net.flags,
             f"--iterations={bundle.small(8, 1)}", "--json"], end - time.monotonic())
        times = json.JSONDecoder().raw_decode(told[told.index("{"):])[0]
        result.check(True, "")
        share = times["least"]["ms"] / times["training_iteration"]["median_ms"]
        result.measure(f"{row}, of the byte roofline", share, "",
                       least=0.45 if row.net == "resnet50" else None)
        result.detail(str(row), times)
        for line in fused_lines(times):
            result.note(f"{row}: {line}")
        text += [f"{row}: peaks {json.dumps(times['peak'])}, least {json.dumps(times['least'])}",
                 *layer_lines(times), ""]
        bundle.put_result("profile.txt", "\n".join(text) + "\n")
    result.note(nan_line(bundle.folder / "measured"))


def layer_lines(times):
    """Returns the slowest layers: share of the time, milliseconds and GB/s of both directions."""
    layers = sorted(times["layers"], key=lambda layer: -layer["percent_of_time"])[:LAYERS]
    lines = []
    for layer in layers:
        both = [layer[way] for way in ("forward", "backward")]
        figures = "  ".join(f"{way['median_ms']:8.3f} ms {way['gbytes_per_s'] or 0:7.0f} GB/s"
                            for way in both)
        lines.append(f"{layer['percent_of_time']:5.1f}%  {figures}  {layer['name']} "
                     f"({layer['type']}: {layer['implementation']})")
    return lines


def fused_lines(times):
    """Yields for how many convolutions cuDNN's call adds bias and ReLU. Except in f16, it does not
    where cuDNN's ReLU gives 0 for NaN."""
    names = [layer["implementation"] for layer in times["layers"]]
    for after in ("bias and ReLU", "bias"):
        inside = sum(f" with {after}," in f"{name}," for name in names)
        apart = sum(f", {after} apart" in name for name in names)
        if inside + apart:
            yield f"{after} in cuDNN's call: {inside} of {inside + apart} convolutions"


def nan_line(chosen):
    """Returns how cuDNN's convolution with bias and ReLU treats NaN, from the stored choices:
    tab-separated lines of checksum, GPU and libraries, key, 'algorithm math fusion [workspace]'.
    """
    texts = chosen.read_text(encoding="utf-8").splitlines() if chosen.exists() else []
    lines = [line.split("\t") for line in texts]
    found = collections.Counter(line[3].split()[2] for line in lines
                                if len(line) == 4 and line[2].startswith("forward "))
    return (f"cuDNN's call with bias and ReLU keeps NaN for {found['1'] + found['3']} shapes "
            f"({found['3']} asked to propagate it), gives 0 for {found['2']}; "
            f"{found['0']} have none")


def kernels(bundle, result, seconds):
    """Measures kernels of ResNet-50 with ncu: time, and share of the peak memory rate."""
    net, out = OurNet(bundle, ROWS[0]), bundle.folder / "ncu.csv"
    command = [tool("ncu"), "--clock-control", "none", "--cache-control", "none", "--csv", "--page",
               "raw", "--log-file", out, "--print-units", "base", "--metrics", ",".join(METRICS),
               "--launch-skip", FIRST_KERNELS, "--launch-count", KERNELS, "--kill", "yes",
               bundle.trainer, "train", f"--solver={net.solver(2)}", "--nogpu_graph", *net.flags]
    try:
        said = children.run(command, seconds).stderr
    except subprocess.TimeoutExpired as late:
        said = late.stderr
        result.cut("ncu: no time was left for all kernels")
    read_kernels(bundle, result, out, said)


def read_kernels(bundle, result, out, said):
    """Reports what ncu wrote to `out`, even if it was ended. `said` is its stderr."""
    text = out.read_text(encoding="utf-8", errors="replace") if out.exists() else ""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    if result.whole or len(lines) > 2:
        result.check(len(lines) > 2, f"ncu: {(text + said).strip()[-300:]}")
    bundle.put_result("kernels.txt", "\n".join(kernel_lines(csv.DictReader(lines))) + "\n")


def kernel_lines(rows):
    """Returns a line per kernel name: share, count, milliseconds and share of peak memory rate."""
    kinds = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for row in rows:
        try:
            found = {kind: float(row[name].replace(",", "")) for name, kind in METRICS.items()}
        except (KeyError, ValueError):  # the line of units
            continue
        kind = kinds[row.get("Kernel Name", "?")[:110]]
        kind[0] += 1
        kind[1] += found["ns"]
        kind[2] += found["ns"] * found["dram"]
    whole = sum(kind[1] for kind in kinds.values()) or 1
    return [f"{100 * ns / whole:5.1f}% {count:4} x {ns / count / 1e6:8.4f} ms "
            f"{weighted / ns if ns else 0:5.1f}% dram  {name}"
            for name, (count, ns, weighted) in
            sorted(kinds.items(), key=lambda item: -item[1][1])[:60]]
