#!/usr/bin/env bash
# scripts/bench/virtual_ranks.sh TRAINER [NET...]: trains nets of models/ (lenet, cifar10_full,
# resnet50) on images of noise with virtual_ranks 4: on 1, 2 and 4 ranks of one thread each, and
# stopped on 4 ranks and resumed on 1 and 2. All snapshots must be equal byte for byte.
set -euo pipefail
trainer="$(realpath "$1")"
shift
[ $# -gt 0 ] || set -- lenet cifar10_full resnet50
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/bench/noise.sh
source scripts/bench/noise.sh
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1

train() { # NET NAME FLAGS...
  local net="$1" name="$2"
  shift 2
  mkdir -p "$folder/$net/$name"
  (cd "$folder/$net/$name" && "$trainer" train --solver="$folder/$net/solver.prototxt" \
    --set virtual_ranks=4 "$@" 2>"log.txt") || { tail -n 5 "$folder/$net/$name/log.txt"; exit 1; }
}

require_equal() { # NET NAME
  local file
  for file in net_iter_4.caffemodel net_iter_4.solverstate; do
    cmp "$folder/$1/ranks4/$file" "$folder/$1/$2/$file"
  done
  echo "$1: $2 equals ranks4 ($(stat -c %s "$folder/$1/$2/net_iter_4.caffemodel") bytes of weights)"
}

for net in "$@"; do
  side=32 batch=8
  [ "$net" = lenet ] && side=28
  [ "$net" = resnet50 ] && side=256 batch=2
  make_noise "$trainer" "$folder" "$side"
  mkdir "$folder/$net"
  noise_net "models/$net/train_test.prototxt" "$folder" "$side" "$batch" \
    >"$folder/$net/net.prototxt"
  sed -E -e '/^(net|snapshot|snapshot_prefix|max_iter|test_iter|test_interval|iter_size|display|random_seed|average_loss):/d' \
    "models/$net/solver.prototxt" >"$folder/$net/solver.prototxt"
  cat >>"$folder/$net/solver.prototxt" <<EOF
net: "$folder/$net/net.prototxt"
test_iter: 2 test_interval: 2 max_iter: 4 snapshot: 2 snapshot_prefix: "net"
display: 1 random_seed: 1
EOF
  for ranks in 4 2 1; do train "$net" "ranks$ranks" "--ranks=$ranks"; done
  for ranks in 2 1; do
    require_equal "$net" "ranks$ranks"
    mkdir "$folder/$net/resumed$ranks"
    cp "$folder/$net/ranks4/"net_iter_2.* "$folder/$net/resumed$ranks"
    train "$net" "resumed$ranks" "--ranks=$ranks" --snapshot=net_iter_2.solverstate
    require_equal "$net" "resumed$ranks"
  done
done
