#!/usr/bin/env bash
# scripts/bench/gradient_sums.sh BUILD [NET] [RANKS]: sums all gradients of a net of models/ (resnet50)
# over the ranks (2) of this machine: in buckets, as training does, and with one MPI_Allreduce for each
# parameter, with each of Open MPI's algorithms (0: its own choice). BUILD holds trainer and
# tests/bench/gradient_sums_bench.
set -euo pipefail
build="$(realpath "$1")"
net="${2:-resnet50}"
ranks="${3:-2}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
# shellcheck source=scripts/bench/noise.sh
source "$root/scripts/bench/noise.sh"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
make_noise "$build/trainer" "$folder" 256
noise_net "$root/models/$net/train_test.prototxt" "$folder" 256 2 >"$folder/net.prototxt"
printf 'net: "%s"\nbase_lr: 0.01 lr_policy: "fixed" max_iter: 1\n' "$folder/net.prototxt" \
  >"$folder/solver.prototxt"

export OMPI_MCA_coll_tuned_use_dynamic_rules=1
for algorithm in 0 1 2 3 4 5 6; do
  printf 'coll_tuned_allreduce_algorithm %s: ' "$algorithm"
  OMPI_MCA_coll_tuned_allreduce_algorithm=$algorithm \
    mpirun --allow-run-as-root --bind-to core -np "$ranks" \
    "$build/tests/bench/gradient_sums_bench" "$folder/solver.prototxt" 5 2>/dev/null | tr '\n' ' '
  echo
done
