# Packs programs with the libraries that they need, so that they start on another machine; sourced
# by bundle.sh and gpu/bundle.sh after common.sh. `bundle` is the folder to fill. Programs find
# libraries in the folder lib next to them or one level above (their RPATH).
# shellcheck shell=bash
: "${bundle:?}"

# The other machine provides the parts of the C library: its GPU driver and its MPI also need them.
is_of_the_machine() { [[ "$1" =~ ^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so ]]; }

# Copies a program without its symbols, and the libraries that it loads.
pack_program() {
  local program="$1" to="$2" library
  if ! readelf -d "$program" | grep '(RPATH).*[$]ORIGIN' >/dev/null; then
    say "bundle: $program does not look for libraries beside itself; build it again" >&2
    return 1
  fi
  mkdir -p "$bundle/lib" "$(dirname "$to")"
  strip -o "$to" "$program"
  while read -r library; do
    is_of_the_machine "${library##*/}" && continue
    if [[ "$library" =~ /lib(cuda|cudart|cudnn|cublas)[^/]*$ ]]; then
      say "bundle: $program needs $library to start" >&2
      return 1
    fi
    [[ -e "$bundle/lib/${library##*/}" ]] || cp -L "$library" "$bundle/lib/"
  done < <(ldd "$program" | awk '/=> \// { print $3 }')
}

# train_alone FOLDER: trains with the copy of the bundle in FOLDER.
train_alone() (
  mkdir -p "$1/moved/run/lenet"
  mv "$1/bundle" "$1/moved/"
  cd "$1/moved" || return
  ln -s bundle/models models
  if ! env -i bundle/trainer dataset digits data/digits --train=200 --test=100 2>log ||
    ! env -i bundle/trainer train --solver=models/lenet/solver.prototxt --set max_iter=5 \
      --set test_iter=1 2>log; then
    tail -n 5 log >&2
    say "bundle: does not train without an environment" >&2
    return 1
  fi
  say "bundle: trains without an environment, moved elsewhere"
)

# Starts the bundle's trainer in an empty root that holds only the bundle and the C library, or
# without the rights for that in an empty environment. Then moves the bundle to another folder and
# trains some iterations in an empty environment.
try_alone() {
  local alone library version where
  alone="$(mktemp -d)"
  mkdir -p "$alone/lib64" "$alone/lib/x86_64-linux-gnu" "$alone/bundle"
  cp -L /lib64/ld-linux-x86-64.so.2 "$alone/lib64/"
  for library in $(ldd "$bundle/trainer" | awk '/=> \// { print $3 }'); do
    is_of_the_machine "${library##*/}" || continue
    cp -L "$library" "$alone/lib/x86_64-linux-gnu/"
  done
  cp -r "$bundle"/. "$alone/bundle/"
  if chroot / /bin/true 2>/dev/null; then
    where="in an empty root"
    # Without /proc the loader needs the program's place.
    version="$(env -i LD_ORIGIN_PATH=/bundle "$(command -v chroot)" "$alone" /bundle/trainer --version)"
  else
    where="with an empty environment"
    version="$(cd "$alone" && env -i bundle/trainer --version)"
  fi
  say "bundle: starts $where: $version"
  [[ ! -d "$bundle/models/lenet" ]] || train_alone "$alone"
  rm -rf "$alone"
}
