#!/usr/bin/env bash
# Packs the program with the libraries that it needs, for machines without network or Debian's
# packages, or without the right to install packages. Makes build/trainer-bundle and packs it to
# build/trainer-bundle.tar.gz. On the other machine: tar xf trainer-bundle.tar.gz &&
# trainer-bundle/trainer help
#   scripts/bundle.sh            builds the preset release first (TRAINER_PRESET)
#   scripts/bundle.sh --packed   packs the existing build
#   scripts/bundle.sh --try      tests the bundle without packing it: the program TRAINER_PROGRAM in
#                                the folder TRAINER_BUNDLE_FOLDER
# The other machine must have the C library (at least as new as this one's), MPI and the driver of a
# GPU.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
folder="${TRAINER_BUNDLE_FOLDER:-$root/build}"
bundle="$folder/trainer-bundle"
# shellcheck source=scripts/bundling.sh
source "$root/scripts/bundling.sh"

[[ "${1:-}" == --packed || "${1:-}" == --try ]] || TRAINER_TARGETS=trainer build
rm -rf "$bundle"
pack_program "${TRAINER_PROGRAM:-build/$preset/trainer}" "$bundle/trainer"
cp -r models docs ./*.md CITATION.cff LICENSE "$bundle/"
try_alone
[[ "${1:-}" == --try ]] && exit
tar -C "$folder" -czf "$bundle.tar.gz" trainer-bundle
glibc="$(ldd --version | awk 'NR == 1 { print $NF }')"
say "bundle: $(du -sm "$bundle" | cut -f1) MiB, for machines with glibc $glibc or newer: $bundle.tar.gz"
