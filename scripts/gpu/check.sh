#!/usr/bin/env bash
# All that this machine's GPU can show of trainer, within eight minutes and without a network:
# device_query, the tests on the GPU, losses against stored ones of the CPU, compute-sanitizer, and
# the speed beside PyTorch's. Run it in an unpacked bundle (scripts/gpu/bundle.sh makes one).
#   scripts/gpu/check.sh [--json=FILE] [--seconds=480] [--only=STEP,STEP]
# Prints a line per step and 'N passed, N failed', and writes one JSON. Steps that this machine
# cannot run are left out with their reason.
set -euo pipefail
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
if ! command -v python3 >/dev/null; then
  echo "check: there is no python3, which this needs (3.9 or newer)" >&2
  exit 69
fi
exec python3 "$folder/check.py" "$@"
