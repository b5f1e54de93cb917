#!/usr/bin/env bash
# Makes packages that run on every Linux with glibc 2.27 or newer, in build/packages:
#   trainer-<version>-linux-x86_64.tar.gz                  runs from any folder
#   trainer-<version>-py3-none-manylinux_2_27_x86_64.whl   for pip
# Usage, on Debian 12:
#   scripts/packaging/portable.sh --setup     installs more libraries than scripts/setup.sh; as root
#   scripts/packaging/portable.sh             builds and packs; needs PyPI the first time
#   scripts/packaging/portable.sh --try NAME  trains with the packages in a new Debian of that name,
#                                             e.g. bullseye; needs root, debootstrap and the mirror
#
# How it works. The sources are compiled as usual. The linker uses the static libraries of Debian 12
# and GCC, and stub libraries, which have the symbols of glibc 2.28 but no code; zig generates the
# stubs. portable/old_glibc.c defines the three newer symbols that Debian's libraries need. Debian
# has no static oneDNN, so the packages contain Intel's shared library, which needs only glibc 2.17.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
readonly glibc=2.28
here="$root/scripts/packaging"
packages="$root/build/packages"
# shellcheck source=scripts/packaging/debian.sh
source "$here/debian.sh"
built="$root/build/portable"
parts="$root/build/portable-parts"

fail() {
  printf 'portable: %s\n' "$@" >&2
  exit 1
}

setup() {
  local wanted=(libsnappy-dev libaec-dev libunwind-dev liblzma-dev python3-pip binutils)
  apt-get install -y --no-install-recommends "${wanted[@]}" >/dev/null ||
    fail "apt-get could not install ${wanted[*]}; are you root, and is there a network?"
}

# Unpacks the wheels of portable/requirements.txt.
fetch() {
  local name
  [[ -d "$parts/onednn" ]] && return
  say "portable: fetching oneDNN and zig from PyPI"
  python3 -m pip download --quiet --no-deps --require-hashes -d "$parts" \
    -r "$here/portable/requirements.txt" || fail "pip could not fetch portable/requirements.txt"
  for name in ziglang onednn; do
    python3 -m zipfile -e "$parts/$name"*.whl "$parts/$name"
  done
}

# Stub libraries, and the objects that start a program. The machine's own start objects do not call
# the constructors, because glibc 2.34 and newer do that.
make_c_library() {
  local c="$parts/c" zig="$parts/ziglang/ziglang/zig" cache="$parts/zig" library libraries
  [[ -e "$c/libc.so" ]] && return
  mkdir -p "$c"
  chmod +x "$zig"
  echo 'int main(void) { return 0; }' >"$parts/main.c"
  ZIG_GLOBAL_CACHE_DIR="$cache" ZIG_LOCAL_CACHE_DIR="$cache" "$zig" cc \
    -target "x86_64-linux-gnu.$glibc" -o "$parts/main" "$parts/main.c"
  libraries="$(find "$cache" -name libpthread.so.0 -printf '%h\n')"
  cp "$libraries"/*.so.* "$c/"
  mv "$c/libld.so.2" "$c/ld-linux-x86-64.so.2"
  find "$cache" \( -name crt1.o -o -name libc_nonshared.a \) -exec cp {} "$c/" \;
  for library in m:6 pthread:0 dl:2 rt:1; do
    ln -sf "lib${library%:*}.so.${library#*:}" "$c/lib${library%:*}.so"
  done
  echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( ld-linux-x86-64.so.2 ) )' >"$c/libc.so"
}

# The program provides oneDNN's OpenMP functions (src/backend/cpu/openmp.cc), and some machines have
# no libgomp. This makes oneDNN load an empty library, which the packages contain, instead.
make_onednn() {
  local onednn="$parts/libexec/libdnnl.so.2"
  [[ -e "$onednn" ]] && return
  mkdir -p "${onednn%/*}"
  python3 - "$parts"/onednn/*/data/lib/libdnnl.so.2 "$onednn" <<'PYTHON'
import pathlib, sys
old, new = b"\0libgomp.so.1\0", b"\0libnogomp.so\0"
library = pathlib.Path(sys.argv[1]).read_bytes()
assert library.count(old) == 1
pathlib.Path(sys.argv[2]).write_bytes(library.replace(old, new))
PYTHON
  strip --strip-unneeded "$onednn"
  echo 'GOMP_1.0 {}; OMP_1.0 {};' >"$parts/versions"
  gcc -shared -nostdlib -Wl,-soname,libnogomp.so -Wl,--version-script="$parts/versions" \
    -o "${onednn%/*}/libnogomp.so" -x c /dev/null
}

link_program() {
  local log="$built.log" flags rpath
  # The first folder holds the libraries once they are installed; auditwheel looks into the second.
  rpath="\$ORIGIN/../libexec/trainer;\$ORIGIN/../data/libexec/trainer"
  gcc -O2 -Wall -Wextra -Werror -c "$here/portable/old_glibc.c" -o "$parts/old_glibc.o"
  echo '{ global: GOMP_*; omp_*; local: *; };' >"$parts/exported"
  # -no-pie, because Debian's static libunwind is not position-independent. libgcc_s comes first,
  # because libunwind defines some _Unwind functions, and exceptions need all from one library.
  flags="-no-pie -B$parts/c -L$parts/c -static-libstdc++ $parts/old_glibc.o
    -Wl,--no-as-needed -lgcc_s -ldl -Wl,--gc-sections -Wl,--allow-shlib-undefined
    -Wl,--version-script=$parts/exported -Wl,-Map=$built/map
    -Wl,--export-dynamic-symbol=GOMP_* -Wl,--export-dynamic-symbol=omp_*"
  cmake --preset "$preset" -B "$built" -DTRAINER_STATIC=ON -DTRAINER_MPI=ON \
    -DTRAINER_TESTS=OFF -DTRAINER_BENCH=OFF \
    "-Ddnnl_dnnl_LIBRARY=$parts/libexec/libdnnl.so.2" \
    "-DCMAKE_INSTALL_RPATH=$rpath" \
    "-DCMAKE_EXE_LINKER_FLAGS=${flags//$'\n'/}" >"$log" 2>&1 ||
    fail "CMake failed; the whole text is in $log"
  cmake --build "$built" -j "$jobs" --target trainer 2>&1 | tee -a "$log" | show_build_progress ||
    fail "the build failed; the whole text is in $log"
}

# Copies the licences of everything inside. The linker's map names the static libraries, dpkg knows
# their packages, and their copyright files refer to Debian's copies of common licences.
collect_licenses() {
  local to="$1" package text
  mkdir -p "$to"
  for package in $(linked_packages) libc6; do
    cp -L "/usr/share/doc/$package/copyright" "$to/$package.txt" ||
      fail "the licence of $package is missing"
  done
  text='/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]'
  grep -ohE "$text" "$to"/*.txt | sort -u | while read -r text; do
    cp -L "$text" "$to/" || fail "the licence $text is missing"
  done
  cp "$parts"/onednn/*/data/share/doc/onednn/LICENSE "$to/oneDNN.txt"
  cp "$parts"/onednn/*/data/share/doc/onednn/THIRD-PARTY-PROGRAMS "$to/oneDNN-third-party.txt"
  cp "$parts"/onednn/*.dist-info/LICENSE.txt "$to/oneDNN-package.txt"
  say "libdnnl.so.2 is from onednn-cpu-gomp of PyPI, whose version is in portable/requirements.txt." \
    "portable.sh renamed libgomp.so.1 in it to libnogomp.so and removed its debug symbols." \
    >"$to/oneDNN-changes.txt"
}

linked_packages() {
  local archive
  sed -nE 's/^LOAD (.*\.a)$/\1/p' "$built/map" | sort -u | while read -r archive; do
    [[ "$archive" == "$parts"/* ]] || dpkg -S "$(readlink -f "$archive")" | cut -d: -f1
  done | sort -u
}

pack() {
  local stage="$parts/stage"
  rm -rf "$stage"
  cmake --install "$built" --prefix "$stage" --strip >>"$built.log" ||
    fail "the installation failed; see $built.log"
  mkdir -p "$stage/libexec/trainer"
  cp "$parts"/libexec/* "$stage/libexec/trainer/"
  collect_licenses "$stage/share/doc/trainer/licenses"
  mkdir -p "$packages"
  rm -f "$packages"/*.whl "$packages"/*.tar.gz
  python3 "$here/pack.py" "$stage" "$packages"
}

# Runs portable/try_packages.sh in a new Debian, as a user without rights.
try_in_debian() {
  new_debian "$1"
  cp "$packages"/*.whl "$packages"/*.tar.gz "$here/portable/try_packages.sh" "$debian/tmp/"
  chroot "$debian" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    python3-venv >"$packages/$1.log" 2>&1 || fail "apt-get failed; see $packages/$1.log"
  chroot "$debian" env -i PATH=/usr/bin:/bin HOME=/nonexistent setpriv --reuid=65534 --regid=65534 \
    --clear-groups bash /tmp/try_packages.sh 2>&1 | tee "$packages/$1.log"
}

case "${1:-}" in
  --setup) setup ;;
  --try) try_in_debian "${2:?a name of Debian, such as bullseye}" ;;
  *)
    mkdir -p "$parts" "$built"
    fetch
    make_c_library
    make_onednn
    link_program
    pack
    ;;
esac
