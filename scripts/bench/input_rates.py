#!/usr/bin/env python3
"""Compares the speed of input with its limits, in one run: a table of speeds, ratios and targets.

    input_rates.py --build=build/release [--rounds=5] [--iterations=50] [--only=rates,waits]

rates, each for at most a quarter of a minute: raw records to batches and memcpy; MNIST's records to
batches and memcpy of as many floats; LevelDB and its own iterator; JPEG decoding and turbojpeg;
partial and scaled decoding and the whole picture; a shuffled epoch and reads by key, after the
system has dropped the file from its cache. waits: the share of a training step in which LeNet (from
an LMDB in the cache) and ResNet-50 (from JPEG, with random resized crops) wait for data. The rounds
alternate all measurements; the table has medians. Needs Python with NumPy and Pillow for
`waits`, and build/release/tests/bench/trainer_bench for `rates`.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

LENET = pathlib.Path(__file__).resolve().parents[2] / "models/lenet/train_test.prototxt"
RESNET = pathlib.Path(__file__).resolve().parents[2] / "models/resnet50/train_test.prototxt"

# (name, benchmark, the benchmark to compare with, the lowest ratio)
RATIOS = (
    ("raw 3x256x256 LMDB to batch / memcpy of the batch", "PrefetcherBatches/0/3/256/0/1/real_time",
     "CopyBatch/3/256", 0.7),
    ("LevelDB's cursor / its own iterator", "LevelDbByCursor", "LevelDbByIterator", 0.9),
    ("JPEG decoding / turbojpeg's own", "JpegWhole/1", "JpegTurbo", 0.95),
    ("JPEG at 1/2 / whole", "JpegPart/100/2/0", "JpegWhole/0", 1.4),
    ("JPEG at 1/4 / whole", "JpegPart/100/4/0", "JpegWhole/0", 1.4),
    ("JPEG at 1/2 / whole, grainy", "JpegPart/100/2/1", "JpegWhole/1", 1.0),
    ("JPEG at 1/4 / whole, grainy", "JpegPart/100/4/1", "JpegWhole/1", 1.0),
    ("JPEG, middle part of 0.6 x 0.6 / whole", "JpegPart/60/0/1", "JpegWhole/1", 1.0),
    ("JPEG, middle part of 0.3 x 0.3 / whole", "JpegPart/30/0/1", "JpegWhole/1", 1.0),
    ("shuffled epoch, cold / reads by key, cold", "ShuffledEpochCold/iterations:1/real_time",
     "RandomKeysCold/iterations:1/real_time", 2.0),
)
# (name, benchmark, the lowest speed), compared with a copy of as many bytes as a batch's floats
MNIST = (
    ("MNIST's records to batches, one thread decodes", "PrefetcherBatches/0/1/28/0/1/real_time", 2.3e6),
    ("MNIST's records to batches, two threads decode", "PrefetcherBatches/0/1/28/0/2/real_time", 2.3e6),
)
COPY = "CopyBatch/1/28"


def benchmarks(build, rounds):
    """Returns each benchmark's median records per second, and the disk's read-ahead in KiB."""
    names = sorted({name for _, a, b, _ in RATIOS for name in (a, b)}
                   | {name for _, name, _ in MNIST} | {COPY})
    command = [str(build / "tests/bench/trainer_bench"), "--benchmark_format=json",
               f"--benchmark_filter=^({'|'.join(names)})$", f"--benchmark_repetitions={rounds}",
               "--benchmark_enable_random_interleaving=true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"trainer_bench failed:\n{done.stderr[-2000:]}")
    rates, read_ahead = {}, 0
    for run in json.loads(done.stdout)["benchmarks"]:
        if run["run_type"] == "iteration":
            name = run["run_name"].split("/repeats:")[0]
            rates.setdefault(name, []).append(run["items_per_second"])
            read_ahead = max(read_ahead, run.get("read_ahead_KiB", 0))
    return {name: statistics.median(values) for name, values in rates.items()}, read_ahead


def print_rates(build, rounds):
    rates, read_ahead = benchmarks(build, rounds)
    print(f"{'':52} {'per second':>12} {'against':>12} {'ratio':>7} {'aim':>6}")
    for what, name, other, aim in RATIOS:
        if name not in rates or other not in rates:
            print(f"{what:52} not measured: {name if name not in rates else other} is not built")
            continue
        own, base = rates[name], rates[other]
        print(f"{what:52} {own:12.0f} {base:12.0f} {own / base:7.2f} {aim:6.2f}")
    for what, name, aim in MNIST:
        print(f"{what:52} {rates[name]:12.0f} {rates[COPY]:12.0f} {rates[name] / rates[COPY]:7.2f} "
              f"{aim / 1e6:4.1f} M")
    print(f"The disk of the cold reads is read ahead by {read_ahead:.0f} KiB.")


def wait_share(trainer, solver, iterations):
    command = [trainer, "time", f"--solver={solver}", f"--iterations={iterations}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"trainer time failed:\n{done.stderr[-2000:]}")
    times = json.loads(done.stdout)
    step = times["training_iteration"]["mean_ms"]
    return times["wait_ms"] / step, step


def write_solver(folder, name, net):
    (folder / f"{name}.prototxt").write_text(net)
    solver = folder / f"{name}_solver.prototxt"
    solver.write_text(f'net: "{folder}/{name}.prototxt" base_lr: 0.001 lr_policy: "fixed" '
                      f'max_iter: 100000 snapshot_prefix: "{folder}/{name}"\n')
    return solver


def lenet(trainer, folder):
    subprocess.run([trainer, "dataset", "digits", folder / "digits", "--train=20000", "--test=100"],
                   check=True, capture_output=True)
    return write_solver(folder, "lenet", LENET.read_text().replace("data/digits",
                                                                   f"{folder}/digits"))


def resnet(trainer, folder):
    """Writes models/resnet50 with batches of 16 JPEG records, and a solver for it."""
    import input as photographs  # in the same folder
    photographs.make_data(trainer, folder, 600)
    data = f"""layer {{
  name: "data" type: "Data" top: "data" top: "label"
  transform_param {{ crop_size: 224 mirror: true mean_value: 104 mean_value: 117 mean_value: 123
                    random_resized_crop_param {{ }} }}
  data_param {{ backend: LMDB source: "{folder}/lmdb" batch_size: 16 }}
}}
"""
    layers = re.split(r"(?m)^(?=layer )", RESNET.read_text())
    kept = [layer for layer in layers[1:] if 'type: "Data"' not in layer]
    return write_solver(folder, "resnet50", layers[0] + data + "".join(kept))


def print_waits(trainer, iterations):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for title, make, count in (("LeNet", lenet, 10 * iterations), ("ResNet-50", resnet,
                                                                      max(iterations // 5, 5))):
            share, step = wait_share(trainer, make(trainer, folder), count)
            print(f"{title + ': waits for data, of a step of %.1f ms' % step:52} {100 * share:11.2f} % "
                  f"{'':20} {'1 %':>6}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--only", default="rates,waits")
    args = parser.parse_args()
    if "rates" in args.only.split(","):
        print_rates(args.build, args.rounds)
    if "waits" in args.only.split(","):
        print_waits(str((args.build / "trainer").resolve()), args.iterations)


if __name__ == "__main__":
    main()
