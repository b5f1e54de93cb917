#!/usr/bin/env bash
# What snapshots cost a training: CaffeNet (244 MB of weights, as much momentum), trained with and
# without a snapshot, in turns.
#   scripts/bench/snapshot_cost.sh build/release/trainer [ROUNDS]
# Prints, per round: the time to copy, the time to write and read back (of which training waits for
# the first alone), and what the iterations in that time took longer than without a snapshot.
set -euo pipefail
trainer="$(realpath "${1:-build/release/trainer}")"
rounds="${2:-3}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
work="$(mktemp -d "${TMPDIR:-/tmp}/snapshot_cost.XXXXXX")"
trap 'rm -rf "$work"' EXIT

# Images of noise take the place of ImageNet's: the weights are what counts.
python3 - "$root/models/caffenet/train_test.prototxt" "$work/net.prototxt" <<'PYTHON'
import re
import sys

text = open(sys.argv[1]).read()
layers = re.split(r"\n(?=layer \{)", text)
data = """layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 16 dim: 3 dim: 227 dim: 227 } shape { dim: 16 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }"""
kept = [part for part in layers if 'type: "Data"' not in part and "phase: TEST" not in part]
open(sys.argv[2], "w").write("\n".join([kept[0], data] + kept[1:]) + "\n")
PYTHON
cat >"$work/solver.prototxt" <<SOLVER
net: "$work/net.prototxt"
base_lr: 0.0001
momentum: 0.9
lr_policy: "fixed"
display: 1
max_iter: 40
random_seed: 1
snapshot_prefix: "$work/snap"
snapshot_after_train: false
SOLVER

# The log of a run whose snapshot comes after the 10th and the 20th iteration, or never.
run() {
  "$trainer" train --solver="$work/solver.prototxt" --v=1 --set snapshot="$1" 2>&1 |
    tee "$work/log_$1" >/dev/null
  rm -f "$work"/snap_iter_*
}

for ((round = 1; round <= rounds; ++round)); do
  run 0
  run 20
  python3 - "$work/log_0" "$work/log_20" "$round" <<'PYTHON'
import re
import statistics
import sys


def times(path):
    """The seconds of each iteration, by number."""
    found = re.findall(r"Iteration (\d+) \(\S+ iter/s, (\S+)s/1 iters\)", open(path).read())
    return {int(number): float(seconds) for number, seconds in found}


plain, saving = times(sys.argv[1]), times(sys.argv[2])
usual = statistics.median(list(plain.values())[5:])
copy, write = map(float, re.search(r"iteration 20 took (\S+) s to copy and (\S+) s to write",
                                   open(sys.argv[2]).read()).groups())
# The iterations from the copy on until the file is written.
lost, passed, number = 0.0, 0.0, 20
while passed < copy + write and number in saving:
    passed += saving[number]
    lost += saving[number] - usual
    number += 1
print(f"round {sys.argv[3]}: copy {copy:.3f} s, write {write:.2f} s; iterations take {usual:.3f} s; "
      f"while the snapshot was made they lost {lost:.3f} s, "
      f"{100 * lost / (copy + write):.1f} % of that time; waiting for the copy alone: "
      f"{100 * copy / (copy + write):.1f} %")
PYTHON
done
