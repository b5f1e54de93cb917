#!/usr/bin/env bash
# Installs what the build needs and builds the preset TRAINER_PRESET (release): TRAINER_TARGETS, or
# everything.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build
