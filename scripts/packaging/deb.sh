#!/usr/bin/env bash
# Makes packages of Debian 12 in build/packages: trainer_*.deb of the program, and libtrainer-dev_*.deb
# of the library for C++ programs. dpkg-shlibdeps finds their dependencies.
#   scripts/packaging/deb.sh            builds the preset release first (TRAINER_PRESET)
#   scripts/packaging/deb.sh --packed   packs what is built
#   scripts/packaging/deb.sh --try      also installs it in a new Debian made by debootstrap and trains
#                                       there, with or without --packed; needs root and Debian's mirror
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
packages="$root/build/packages"
# shellcheck source=scripts/packaging/debian.sh
source "$root/scripts/packaging/debian.sh"

fail() {
  printf 'deb: %s\n' "$@" >&2
  exit 1
}

pack() {
  local made
  command -v dpkg-shlibdeps >/dev/null || fail "dpkg-shlibdeps is missing: apt-get install dpkg-dev"
  mkdir -p "$packages"
  rm -f "$packages"/*.deb
  cpack --config "build/$preset/CPackConfig.cmake" -B "$packages" >"build/$preset-deb.log" 2>&1 || {
    tail -n 20 "build/$preset-deb.log" >&2
    fail "CPack failed; the whole text is in $root/build/$preset-deb.log"
  }
  rm -rf "$packages/_CPack_Packages"
  deb="$(echo "$packages"/trainer_*.deb)"
  for made in "$packages"/*.deb; do
    say "deb: $made"
    dpkg-deb --field "$made" Package Version Architecture Installed-Size Depends Recommends
  done
}

# Installs the package and trains where this machine's own libraries are not available.
try_in_debian() {
  new_debian bookworm
  cp "$deb" "$debian/tmp/trainer.deb"
  list_files >"$packages/files_before"
  chroot "$debian" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends /tmp/trainer.deb >"$packages/install.log" 2>&1 ||
    fail "apt-get could not install it; see $packages/install.log"
  say "deb: installed in $(chroot "$debian" cat /etc/debian_version | sed 's/^/Debian /')"
  chroot "$debian" env -i PATH=/usr/bin:/bin bash -euc '
    cd /tmp
    trainer --version
    mkdir -p data run
    trainer dataset digits data/digits --train=500 --test=200 2>/dev/null
    ln -s /usr/share/trainer/models models
    mkdir -p run/lenet
    trainer train --solver=models/lenet/solver.prototxt --set max_iter=50 --set display=50 2>log
    grep "Optimization Done" log >/dev/null
    test -s /usr/share/man/man1/trainer.1.gz || echo "no manual page: this Debian leaves them out"'
  say "deb: trained there"
  remove_in_debian
}

# Prints the files and folders of the new Debian, except the package manager's records and the files
# of the trial itself.
list_files() {
  (cd "$debian" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./var/cache -o -path ./var/log \
    -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./etc/ld.so.cache \) -prune -o -print | sort)
}

# Removes the package and its dependencies. Fails if files of the package are left.
remove_in_debian() {
  local owned left
  owned="$(chroot "$debian" dpkg -L trainer | wc -l)"
  chroot "$debian" env DEBIAN_FRONTEND=noninteractive apt-get purge --autoremove -y trainer \
    >"$packages/remove.log" 2>&1 || fail "apt-get could not remove it; see $packages/remove.log"
  ! chroot "$debian" dpkg -s trainer >/dev/null 2>&1 || fail "dpkg still knows it"
  left="$(list_files | comm -13 "$packages/files_before" - | awk '/trainer/ || ++count <= 20')"
  if grep -q trainer <<<"$left"; then fail "left behind:" "$left"; fi
  say "deb: removed with its $owned files and folders; nothing of it is left"
  [[ -z "$left" ]] || say "deb: of its dependencies stayed: $(tr '\n' ' ' <<<"$left")"
}

[[ " $* " == *" --packed "* ]] || TRAINER_TARGETS="trainer libtrainer" build
pack
[[ " $* " != *" --try "* ]] || try_in_debian
