#!/usr/bin/env bash
# All that this machine's GPU can show of trainer, within eight minutes and without a network: the
# tests on the GPU, losses against stored ones of the CPU, accuracies in 16 bits, speed and memory
# beside PyTorch's, feeding, faults, a profile and compute-sanitizer. Run it in an unpacked bundle
# (scripts/gpu/bundle.sh makes one), which may be read-only:
#   scripts/gpu/check.sh [--results=FOLDER] [--seconds=480] [--only=STEP,STEP] [--python=PYTHON]
#                        [--cifar10=FOLDER] [--dry]
# Prints what each step found as it ends, and at last a screen with all steps, figures beside what is
# wanted of them, and 'N passed, N failed'. FOLDER (gpu_check) has that as summary.txt, with
# results.json and profile.txt, up to date at any time. Steps that this machine cannot run are left
# out with their reason: PyTorch's figures without a Python with PyTorch, for example. Ends with 1
# where something failed; a figure that misses what is wanted is no failure.
set -euo pipefail
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
if ! command -v python3 >/dev/null; then
  echo "check: there is no python3, which this needs (3.9 or newer)" >&2
  exit 69
fi
exec python3 -B "$folder/check.py" "$@"
