#!/usr/bin/env bash
# Installs what the build needs, builds everything and runs all tests. Arguments are passed to
# ctest, e.g. -R '^layers\.'.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build
run_tests "$@"
