#!/usr/bin/env bash
# Tests the packages of portable.sh, which are in /tmp, as a user without rights. It unpacks the
# tarball in a folder with a blank in its name, makes it read-only, and trains through a link. It
# installs the wheel in a virtual environment, moves the environment, and trains.
set -euo pipefail
folder="$(mktemp -d)/a folder"
mkdir "$folder"
cd "$folder"
say() { printf '%s\n' "$*"; }

# run LOG COMMAND...: runs a command and, if it fails, shows the end of its output.
run() {
  local log="$1"
  shift
  "$@" >"$log" 2>&1 || {
    tail -n 20 "$log"
    say "failed: $*"
    exit 1
  }
}

# train HOW COMMAND
train() {
  local start="$SECONDS" trainer="$2"
  say "$1: $("$trainer" --version), $("$trainer" device_query | grep -m 1 oneDNN)"
  run "$1.log" "$trainer" demo "$1 run" --epochs=2
  grep -ho 'Best test: accuracy [0-9.]* at iteration [0-9]*' "$1 run"/*/run/train.log
  run "$1.log" "$trainer" doctor --solver="$1 run/lenet/solver.prototxt" --seconds=1
  run "$1.log" "$trainer" train --solver="$1 run/lenet/solver.prototxt" --ranks=2 --set max_iter=20
  say "$1: trained, measured, and trained with two ranks in $((SECONDS - start)) s"
}

say "Debian $(cat /etc/debian_version), $(ldd --version | head -n 1)"
tar xf /tmp/trainer-*-linux-x86_64.tar.gz
mkdir moved bin
mv trainer-*/ moved/
chmod -R a-w moved
ln -s "$PWD"/moved/trainer-*/bin/trainer bin/trainer
train tarball "$PWD/bin/trainer"

python3 -m venv first
time first/bin/pip install --quiet --no-index --no-cache-dir --disable-pip-version-check \
  /tmp/trainer-*.whl
mv first second
train wheel "$PWD/second/bin/trainer"
