#!/usr/bin/env bash
# Fails on what shellcheck finds in scripts of the shell.
# Exit status 77 (skipped, for CTest) where shellcheck is not installed.
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
