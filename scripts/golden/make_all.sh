#!/usr/bin/env bash
# Makes all files in tests/golden again: scripts/golden/make_all.sh [python with numpy, torch, cv2
# and PIL]
set -euo pipefail
python="$(command -v "${1:-python3}")"
python="$(cd "$(dirname "$python")" && pwd)/$(basename "$python")"
cd "$(dirname "${BASH_SOURCE[0]}")"
for script in convolution pooling softmax layers norms attention geometry recurrent regions style forks rules lbfgs nets big_nets images parts augment augment_ops hdf5 tables; do
  PYTHONDONTWRITEBYTECODE=1 "$python" "$script.py"
done
du -bch ../../tests/golden/* | tail -n 1
