#!/usr/bin/env bash
# From a bare checkout to a trained net: sets up, builds, makes the digits data set that the program
# carries, and trains LeNet on it.
#   scripts/run.sh [solver.prototxt]      (default: models/lenet/solver.prototxt)
set -euo pipefail
solver="${1:-models/lenet/solver.prototxt}"
[[ "$solver" == /* || ! -e "$solver" ]] || solver="$PWD/$solver"
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
TRAINER_TARGETS=trainer build
trainer="build/$preset/trainer"

if [[ ! -e data/digits/train_lmdb/data.mdb || ! -e data/digits/test_lmdb/data.mdb ]]; then
  mkdir -p data
  say "data: making data/digits"
  "$trainer" dataset digits data/digits
fi

# snapshot_prefix of the solver: its folder must exist before training starts.
prefix="$(sed -n 's/^ *snapshot_prefix *: *["'\'']\(.*\)["'\''].*$/\1/p' "$solver" | tail -n 1)"
prefix="${prefix:-${solver%.*}}"
mkdir -p "$(dirname "$prefix")"
log="$prefix.log"
say "train: $trainer train --solver=$solver"
# tee -i lets the trainer handle Ctrl-C: it finishes the iteration and saves.
status=0
"$trainer" train --solver="$solver" 2>&1 | tee -i "$log" || status=$?

weights="$(sed -n 's/^.*Snapshotting to .* file //p' "$log" | tail -n 1)"
say "weights: ${weights:+$root/}${weights:-none were saved}"
say "log:     $root/$log"
exit "$status"
