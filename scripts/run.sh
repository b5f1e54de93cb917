#!/usr/bin/env bash
# Goes from a bare checkout to a trained net: installs what the build needs, builds, draws the data
# set of digits, and trains LeNet on it.
#   scripts/run.sh [solver.prototxt]      (default: models/lenet/solver.prototxt)
set -euo pipefail
solver="${1:-models/lenet/solver.prototxt}"
[[ "$solver" == /* || ! -e "$solver" ]] || solver="$PWD/$solver"
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# minutes <seconds of one core>: prints how many minutes that takes on this machine, rounded up.
minutes() { echo $((($1 / jobs + 59) / 60)); }

say "run: sets up, builds the program, draws a set of digits and trains a net on it;"
say "     $(minutes 240) to $(minutes 560) minutes on $jobs cores the first time, later only seconds"
scripts/setup.sh
TRAINER_TARGETS=trainer build
trainer="build/$preset/trainer"

if [[ ! -e data/digits/train_lmdb/data.mdb || ! -e data/digits/test_lmdb/data.mdb ]]; then
  mkdir -p data
  say "data: making data/digits"
  "$trainer" dataset digits data/digits
fi

# text_field <name>: prints the last value of a text field of the solver, or nothing.
text_field() { sed -n "s/^ *$1 *: *[\"']\\(.*\\)[\"'].*$/\\1/p" "$solver" | tail -n 1; }

# The folder of snapshot_prefix must exist before training starts.
prefix="$(text_field snapshot_prefix)"
prefix="${prefix:-${solver%.*}}"
mkdir -p "$(dirname "$prefix")"
log="$prefix.log"
say "train: $trainer train --solver=$solver (log: $log)"
# tee -i lets the trainer handle Ctrl-C: it finishes the iteration and saves.
status=0
"$trainer" train --solver="$solver" 2>&1 | tee -i "$log" || status=$?

weights="$(sed -n 's/^.*Snapshotting to .* file //p' "$log" | tail -n 1)"
accuracy="$(sed -n 's/^.*Test net output #[0-9]*: \(accuracy = [0-9.e+-]*\).*$/\1/p' "$log" | tail -n 1)"
net="$(text_field net)"
say ""
say "result:  ${accuracy:-the net reports no accuracy} on the test set"
say "weights: ${weights:-none were saved}"
if [[ -n "$weights" && -n "$net" ]]; then
  say "next:    $trainer test --model=$net --weights=$weights --confusion"
else
  say "next:    $trainer check --solver=$solver"
fi
exit "$status"
