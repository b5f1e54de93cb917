#!/usr/bin/env bash
# Packs what a machine with a GPU needs to check this program: the programs, the models, the golden
# values and Debian's libraries, but no CUDA library. Makes build/gpu-bundle and packs it to
# build/gpu-bundle.tar.xz. On the other machine: tar xf gpu-bundle.tar.xz &&
# gpu-bundle/scripts/gpu/check.sh
#   scripts/gpu/bundle.sh            builds the preset cuda-tests first (TRAINER_PRESET)
#   scripts/gpu/bundle.sh --packed   packs the existing build
# TRAINER_BUNDLE_TESTS names the tests to pack. For other GPUs than H100 and H200 first configure
# with: cmake --preset cuda-tests -DCMAKE_CUDA_ARCHITECTURES=80-real
set -euo pipefail
export TRAINER_PRESET="${TRAINER_PRESET:-cuda-tests}"
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
read -ra tests <<<"${TRAINER_BUNDLE_TESTS-backend_test layers_test optim_test net_test solver_test}"
bundle="$root/build/gpu-bundle"
# shellcheck source=scripts/bundling.sh
source "$root/scripts/bundling.sh"
readonly limit_mb=60

pack() {
  local name file
  rm -rf "$bundle"
  mkdir -p "$bundle/tests" "$bundle/scripts/gpu"
  pack_program "build/$preset/trainer" "$bundle/trainer"
  for name in "${tests[@]}"; do
    pack_program "build/$preset/tests/$name" "$bundle/tests/$name"
  done
  cp -r models "$bundle/"
  if ((${#tests[@]} > 0)); then
    # Files of the source tree that the tests read.
    cp -r tests/golden tests/solver "$bundle/tests/"
    find "$bundle/tests" \( -name '*.cc' -o -name '*.h' \) -delete
  fi
  cp scripts/peer_nets.py "$bundle/scripts/"
  for file in scripts/gpu/*.py scripts/gpu/check.sh scripts/gpu/losses.txt; do
    cp "$file" "$bundle/scripts/gpu/"
  done
  strip --strip-unneeded "$bundle"/lib/*
}

[[ "${1:-}" == --packed ]] || TRAINER_TARGETS="trainer ${tests[*]}" build
pack
try_alone
# The programs hold the same modules, so a dictionary that spans several of them packs three of them
# to 0.6 of the size.
XZ_OPT=--lzma2=preset=2,dict=64MiB tar -C build -cJf build/gpu-bundle.tar.xz gpu-bundle
packed_mb="$((($(stat -c %s build/gpu-bundle.tar.xz) + 999999) / 1000000))"
say "bundle: $(du -sm "$bundle" | cut -f1) MiB, packed $packed_mb MB:" "$root/build/gpu-bundle.tar.xz"
if ((packed_mb > limit_mb)); then
  say "bundle: more than $limit_mb MB; leave out tests with TRAINER_BUNDLE_TESTS" >&2
  exit 1
fi
