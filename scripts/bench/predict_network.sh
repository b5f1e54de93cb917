#!/usr/bin/env bash
# scripts/bench/predict_network.sh TRAINER [RATE...]: runs LeNet on 2 emulated hosts (see hosts.sh)
# with links of each rate (100mbit 300mbit 1gbit). bench-comm measures the link, plan predicts the
# iteration from the link and one rank's work, and train runs it. Alternates in ROUNDS (3) rounds,
# prints medians, and fails if a prediction is off by more than 15 %. Each rank has BATCH (256)
# images. Needs root and an idle machine.
set -euo pipefail
# shellcheck source=scripts/bench/hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
trainer="$(realpath "$1")"
shift
(($# > 0)) || set -- 100mbit 300mbit 1gbit
rounds="${ROUNDS:-3}"
batch="${BATCH:-256}"
export OMP_NUM_THREADS=1 HOSTS_PIN=1

# median: prints the median of the numbers in stdin, one per line.
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

make_job() {
  "$trainer" dataset digits data --train=2560 --test=20 --minloglevel=1 >/dev/null
  sed "s|data/digits/|data/|; s|batch_size: 64|batch_size: $batch|" \
    "$root/models/lenet/train_test.prototxt" >net.prototxt
  cat >solver.prototxt <<'SOLVER'
net: "net.prototxt"
base_lr: 0.01
lr_policy: "fixed"
momentum: 0.9
display: 10
max_iter: 60
snapshot: 0
snapshot_after_train: false
random_seed: 1
SOLVER
}

# predict JSON: both hosts compute at once, as in the run. Prints host 1's prediction.
predict() {
  local plan=("$trainer" plan --solver=solver.prototxt --ranks=2 --link=link.json --iterations=20
    --json --minloglevel=1)
  on_host 2 "${plan[@]}" >/dev/null &
  on_host 1 "${plan[@]}" >"$1"
  wait $!
}

# Prints the milliseconds per iteration of a run in windows of ten iterations, without the first
# window.
measured() {
  hosts_mpirun 2 1 "$trainer" train --solver=solver.prototxt 2>train.log || {
    tail -n 20 train.log >&2
    return 1
  }
  sed -n 's|.*Iteration [0-9]* (.* iter/s, \([0-9.e+-]*\)s/10 iters).*|\1|p' train.log |
    tail -n +2 | awk '{ print $1 * 100 }'
}

field() { sed -n "s/.*\"$1\": \\([0-9.e+-]*\\),*\$/\\1/p" "$2" | head -n 1; }

make_hosts 2
cd "$hosts_folder"
make_job
for ((round = 1; round <= rounds; ++round)); do
  for rate in "$@"; do
    limit_hosts "$rate"
    hosts_mpirun 2 1 "$trainer" bench-comm --mib=4 --rounds=9 --json=link.json --minloglevel=1 \
      >"bench-$rate.txt"
    predict plan.json
    field step_ms plan.json >>"predicted-$rate"
    for part in forward_ms backward_ms update_ms; do field $part plan.json; done |
      awk '{ sum += $1 } END { print sum }' >>"alone-$rate"
    sed -n 's|^between machines: .* us, \([0-9.]*\) GB/s.*|\1|p' "bench-$rate.txt" >>"link-$rate"
    measured >"windows"
    median <windows >>"measured-$rate"
  done
done

printf 'LeNet, %s images on each of 2 ranks, medians of %s rounds, ms\n' "$batch" "$rounds"
printf '%-10s %10s %10s %10s %10s %8s\n' link 'GB/s' alone predicted measured off
bad=0
for rate in "$@"; do
  awk -v rate="$rate" -v link="$(median <"link-$rate")" -v alone="$(median <"alone-$rate")" \
    -v predicted="$(median <"predicted-$rate")" -v measured="$(median <"measured-$rate")" 'BEGIN {
      off = predicted / measured - 1
      printf "%-10s %10.4f %10.2f %10.2f %10.2f %+7.1f%%\n", rate, link, alone, predicted, measured,
        100 * off
      exit off > 0.15 || off < -0.15 }' || bad=1
done
exit "$bad"
