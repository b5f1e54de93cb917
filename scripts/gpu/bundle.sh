#!/usr/bin/env bash
# Packs what a machine with a GPU needs to check this program: the programs, the models, the golden
# values and Debian's libraries, but no library of CUDA. Makes build/gpu-bundle and, of it,
# build/gpu-bundle.tar.xz. There: tar xf gpu-bundle.tar.xz && gpu-bundle/scripts/gpu/check.sh
#   scripts/gpu/bundle.sh            builds the preset cuda-tests first (TRAINER_PRESET)
#   scripts/gpu/bundle.sh --packed   packs what is built
# The tests that it takes along are TRAINER_BUNDLE_TESTS. For other GPUs than H100 and H200 configure
# before: cmake --preset cuda-tests -DCMAKE_CUDA_ARCHITECTURES=80-real
set -euo pipefail
export TRAINER_PRESET="${TRAINER_PRESET:-cuda-tests}"
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
read -ra tests <<<"${TRAINER_BUNDLE_TESTS-backend_test layers_test rules_test net_test solver_test}"
bundle="$root/build/gpu-bundle"
readonly limit_mib=60

# The C library's own parts belong to the machine: its GPU driver needs them, too.
is_of_the_machine() { [[ "$1" =~ ^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so ]]; }

# Copies a program without its symbols, and the libraries that it loads.
pack_program() {
  local program="$1" to="$2" library
  strip -o "$to" "$program"
  while read -r library; do
    is_of_the_machine "$(basename "$library")" && continue
    if [[ "$library" =~ /lib(cuda|cudart|cudnn|cublas)[^/]*$ ]]; then
      say "bundle: $program needs $library to start" >&2
      return 1
    fi
    [[ -e "$bundle/lib/$(basename "$library")" ]] || cp -L "$library" "$bundle/lib/"
  done < <(ldd "$program" | awk '/=> \// { print $3 }')
}

pack() {
  local name file
  rm -rf "$bundle"
  mkdir -p "$bundle/lib" "$bundle/tests" "$bundle/scripts/gpu"
  pack_program "build/$preset/trainer" "$bundle/trainer"
  for name in "${tests[@]}"; do
    pack_program "build/$preset/tests/$name" "$bundle/tests/$name"
  done
  cp -r models "$bundle/"
  if ((${#tests[@]} > 0)); then
    # What the tests read of the source tree.
    cp -r tests/golden tests/solver "$bundle/tests/"
    find "$bundle/tests" \( -name '*.cc' -o -name '*.h' \) -delete
  fi
  cp scripts/peer_nets.py "$bundle/scripts/"
  for file in scripts/gpu/*.py scripts/gpu/check.sh scripts/gpu/losses.txt; do
    cp "$file" "$bundle/scripts/gpu/"
  done
  strip --strip-unneeded "$bundle"/lib/*
}

# Starts it where nothing else is: an empty root that holds the bundle and the C library, or, where
# that takes rights we do not have, an empty environment.
try_alone() {
  local alone library version where
  alone="$(mktemp -d)"
  mkdir -p "$alone/lib64" "$alone/lib/x86_64-linux-gnu" "$alone/bundle"
  cp -L /lib64/ld-linux-x86-64.so.2 "$alone/lib64/"
  for library in $(ldd "$bundle/trainer" | awk '/=> \// { print $3 }'); do
    is_of_the_machine "$(basename "$library")" || continue
    cp -L "$library" "$alone/lib/x86_64-linux-gnu/"
  done
  cp -r "$bundle"/. "$alone/bundle/"
  if [[ "$(id -u)" == 0 ]]; then
    where="in an empty root"
    # Without /proc the loader must be told where the program is.
    version="$(env -i LD_ORIGIN_PATH=/bundle "$(command -v chroot)" "$alone" /bundle/trainer --version)"
  else
    where="with an empty environment"
    version="$(cd "$alone" && env -i bundle/trainer --version)"
  fi
  say "bundle: starts $where: $version"
  rm -rf "$alone"
}

[[ "${1:-}" == --packed ]] || TRAINER_TARGETS="trainer ${tests[*]}" build
pack
try_alone
XZ_OPT=-2 tar -C build -cJf build/gpu-bundle.tar.xz gpu-bundle
packed_mib="$(($(stat -c %s build/gpu-bundle.tar.xz) >> 20))"
say "bundle: $(du -sm "$bundle" | cut -f1) MiB, packed $packed_mib MiB:" "$root/build/gpu-bundle.tar.xz"
if ((packed_mib > limit_mib)); then
  say "bundle: more than $limit_mib MiB; leave out tests with TRAINER_BUNDLE_TESTS" >&2
  exit 1
fi
