#!/usr/bin/env bash
# Sets up, builds everything and runs every test. Arguments go to ctest, e.g. -R '^layers\.'.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build
run_tests "$@"
