#!/usr/bin/env bash
# Measures what a snapshot costs the training of CaffeNet (244 MB of weights, as much momentum):
#   scripts/bench/snapshot_cost.sh build/release/trainer [ROUNDS]
# Prints for each round the time to copy, in which training stops, the time to write and read back,
# and how much slower iterations are during it than before and after it.
set -euo pipefail
trainer="$(realpath "${1:-build/release/trainer}")"
rounds="${2:-3}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
work="$(mktemp -d "${TMPDIR:-/tmp}/snapshot_cost.XXXXXX")"
trap 'rm -rf "$work"' EXIT

# Images of noise replace ImageNet's: only the weights matter.
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
max_iter: 480
random_seed: 1
snapshot_prefix: "$work/snap"
snapshot_after_train: false
SOLVER

for ((round = 1; round <= rounds; ++round)); do
  "$trainer" train --solver="$work/solver.prototxt" --v=1 --set snapshot=160 2>&1 |
    tee "$work/log" >/dev/null
  rm -f "$work"/snap_iter_*
  python3 - "$work/log" "$round" <<'PYTHON'
import re
import statistics
import sys

START = 160  # the iteration of the first snapshot
text = open(sys.argv[1]).read()
found = re.findall(r"Iteration (\d+) \(\S+ iter/s, (\S+)s/1 iters\)", text)
times = {int(number): float(seconds) for number, seconds in found}
copy, write = map(float, re.search(rf"iteration {START} took (\S+) s to copy and (\S+) s to write",
                                   text).groups())
meanwhile, number = [], START + 1
while sum(meanwhile) < write:
    meanwhile.append(times[number])
    number += 1
# Taking equally many iterations on both sides cancels a gradual slowdown of the machine.
side = min(len(meanwhile), 2 * START - number)
usual = statistics.mean([times[i] for i in range(START - side, START)]
                        + [times[i] for i in range(number, number + side)])
lost = sum(meanwhile) - usual * len(meanwhile)
print(f"round {sys.argv[2]}: copy {copy:.3f} s, write {write:.1f} s; an iteration takes {usual:.3f} s, "
      f"{statistics.mean(meanwhile):.3f} s while the snapshot is written: {lost:+.2f} s; with the "
      f"copy {100 * (copy + lost) / (copy + write):+.1f} % of the time of the snapshot")
PYTHON
done
