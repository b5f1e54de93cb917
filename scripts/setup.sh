#!/usr/bin/env bash
# Installs the missing packages that the build needs, with apt. For Debian 12.
#   scripts/setup.sh          the compiler, the tools and the libraries
#   scripts/setup.sh --lint   clang-format 14 and shellcheck as well, for scripts/check_format.sh and
#                             scripts/check_shell.sh
# With TRAINER_SKIP_SETUP=1 it installs nothing.
set -euo pipefail

packages=(build-essential cmake ninja-build ccache pkg-config git python3
  protobuf-compiler libprotobuf-dev libdnnl-dev liblmdb-dev libleveldb-dev libgoogle-glog-dev
  libgflags-dev zlib1g-dev libhdf5-dev libjpeg62-turbo-dev libpng-dev libtiff-dev libgtest-dev
  libgmock-dev libbenchmark-dev libopenmpi-dev openmpi-bin)

# Tools that were installed in another way count as well.
declare -A command_of=([cmake]=cmake [ninja-build]=ninja [ccache]=ccache [git]=git
  [python3]=python3 [pkg-config]=pkg-config [protobuf-compiler]=protoc
  [clang-format-14]=clang-format-14 [shellcheck]=shellcheck [openmpi-bin]=mpirun)

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

is_there() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]] && return
  [[ -n "${command_of[$1]:-}" ]] && command -v "${command_of[$1]}" >/dev/null
}

install_missing() {
  local as_root=()
  if [[ "$(id -u)" != 0 ]]; then
    command -v sudo >/dev/null ||
      fail "missing: $*" "this needs root or sudo; ask your administrator for: apt-get install $*"
    as_root=(sudo)
  fi
  echo "setup: installing $*"
  local log
  log="$(mktemp)"
  if ! { "${as_root[@]}" apt-get update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "$@"; } </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: $*" \
      "is there a network? To build with what is there: TRAINER_SKIP_SETUP=1"
  fi
  rm -f "$log"
}

main() {
  [[ "${1:-}" == --lint ]] && packages+=(clang-format-14 shellcheck)
  if [[ -n "${TRAINER_SKIP_SETUP:-}" ]]; then
    echo "setup: skipped (TRAINER_SKIP_SETUP is set)"
    return
  fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this is not a Debian system; install these by hand, then set TRAINER_SKIP_SETUP=1:" \
      "GCC 12 or newer, CMake 3.25, Ninja, Python 3, protobuf 3.12 to 3.21 with protoc," \
      "oneDNN 2.6 or 2.7, LMDB, LevelDB, HDF5, libjpeg-turbo, libpng, glog, gflags, zlib; for TIFF" \
      "images libtiff; for the tests GoogleTest and GoogleMock; for the benchmarks Google Benchmark;" \
      "for ranks on several machines an MPI"
  fi
  local missing=() package
  for package in "${packages[@]}"; do
    is_there "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    echo "setup: all ${#packages[@]} packages are installed"
    return
  fi
  install_missing "${missing[@]}"
  echo "setup: done"
}

main "$@"
