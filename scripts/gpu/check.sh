#!/usr/bin/env bash
# Checks trainer on this machine's GPU within eight minutes and without a network: whether cuDNN and
# cuBLAS compute five nets in three types, losses compared with stored losses of the CPU, speed and
# memory compared with PyTorch, tests on the GPU, a profile, compute-sanitizer, input, accuracies in
# 16 bits, and faults. Run it in an unpacked bundle (scripts/gpu/bundle.sh makes one), which may be
# read-only:
#   scripts/gpu/check.sh [--results=FOLDER] [--seconds=480] [--only=STEP,STEP] [--python=PYTHON]
#                        [--cifar10=FOLDER] [--dry]
# Prints the result of each step when it ends. At the end prints all steps, each figure with its
# target, and 'N passed, N failed'. FOLDER (gpu_check) has this as summary.txt, with results.json,
# profile.txt and kernels.txt, and is up to date at any time. Skips steps that this machine cannot
# run and says why: PyTorch's figures without a Python with PyTorch, for example. Exits with code 1
# if a step failed. A figure that misses its target is not a failure.
set -euo pipefail
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
if ! command -v python3 >/dev/null; then
  echo "check: there is no python3, which this needs (3.9 or newer)" >&2
  exit 69
fi
exec python3 -B "$folder/check.py" "$@"
