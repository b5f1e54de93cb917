# Makes new Debians to test packages in. deb.sh and portable.sh source it after common.sh. They
# define `packages`, the folder for logs, and fail().
# shellcheck shell=bash
: "${packages:?}"

# new_debian NAME: makes a Debian in the folder $debian and deletes it when the script ends. If
# TRAINER_DEBIAN names a folder with a Debian, it uses that one and keeps it.
new_debian() {
  local script="/usr/share/debootstrap/scripts/$1"
  debian="${TRAINER_DEBIAN:-}"
  [[ -z "$debian" ]] || return 0
  command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
  [[ -e "$script" ]] || script=/usr/share/debootstrap/scripts/sid  # it does not know the newest
  debian="$(mktemp -d)"
  trap 'umount "$debian/proc" 2>/dev/null || true; rm -rf --one-file-system "$debian"' EXIT
  debootstrap --variant=minbase "$1" "$debian" http://deb.debian.org/debian "$script" \
    >"$packages/debootstrap.log" 2>&1 || fail "debootstrap failed; see $packages/debootstrap.log"
  mount -t proc proc "$debian/proc" 2>/dev/null || true
}
