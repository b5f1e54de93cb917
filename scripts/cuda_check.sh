#!/usr/bin/env bash
# Checks the program of the preset cuda on a machine without a GPU: it needs no CUDA library,
# starts, says what is missing, refuses --gpu with one sentence, and trains LeNet for some
# iterations. Makes its digits in a temporary folder.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
trainer="$root/build/cuda/trainer"

if ldd "$trainer" | grep -E 'libcuda|libcudart|libcudnn|libcublas|libcurand|not found'; then
  say "$trainer needs these to start" >&2
  exit 1
fi
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp -r models "$folder"
cd "$folder"
mkdir -p data run/lenet
"$trainer" dataset digits data/digits 2>&1 | tail -n 1
"$trainer" device_query >query
if grep -q '^GPU 0:' query; then
  say "there is a GPU: scripts/gpu/check.sh checks more"
else
  grep -A 1 '^missing:' query
  status=0
  "$trainer" train --solver=models/lenet/solver.prototxt --gpu=0 2>error || status=$?
  grep '^error: --gpu=0: ' error
  ((status == 69)) || { say "--gpu=0 ended with $status, not 69" >&2; exit 1; }
fi
"$trainer" train --solver=models/lenet/solver.prototxt --set max_iter=100 --set display=20 \
  --set test_interval=100 --set test_iter=5 2>&1 | tee log | grep -E 'Iteration|accuracy'
grep -q 'Optimization Done' log
# Guessing one of 10 classes gives 0.1.
awk '/accuracy = / { last = $NF } END { exit !(last > 0.8) }' log
