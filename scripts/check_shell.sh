#!/usr/bin/env bash
# Fails if shellcheck finds a problem in a shell script. Without shellcheck it exits with code 77
# (skipped, for CTest).
set -euo pipefail
tool="$(command -v shellcheck || true)"
if [[ -z "$tool" ]]; then
  echo "shell: skipped, shellcheck is not installed (scripts/setup.sh --lint)"
  exit 77
fi
root="${TRAINER_LINT_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}"
cd "$root"
find scripts -name '*.sh' -print0 | sort -z | xargs -0 -r "$tool" --external-sources --exclude=SC1091
echo "shell: shellcheck agrees"
