#!/usr/bin/env bash
# Fails if clang-format 14 would change C++ files; with --fix formats them. Exits with code 77
# (skipped, for CTest) if clang-format 14 is not installed.
set -euo pipefail
tool="$(command -v clang-format-14 || true)"
if [[ -z "$tool" ]]; then
  echo "format: skipped, clang-format 14 is not installed (scripts/setup.sh --lint)"
  exit 77
fi
root="${TRAINER_LINT_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}"
cd "$root"
action=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && action=(-i)
folders=()
for folder in include src tools tests; do [[ -d "$folder" ]] && folders+=("$folder"); done
find "${folders[@]}" \( -name '*.cc' -o -name '*.h' \) -print0 |
  xargs -0 -r -n 16 -P 2 "$tool" --style=file "${action[@]}"
echo "format: clang-format 14 agrees"
