# shellcheck shell=bash
# Replaces a net's data by images of noise; to be sourced.

# make_noise TRAINER FOLDER SIDE: makes 47 color images as FOLDER/images<SIDE>/lmdb, and their mean.
make_noise() {
  local trainer="$1" root="$2/images$3" side="$3" i
  [ -d "$root" ] && return
  mkdir "$root"
  for i in $(seq 0 46); do
    { printf 'P6\n%d %d\n255\n' "$side" "$side"; head -c $((3 * side * side)) /dev/urandom; } \
      >"$root/$i.ppm"
    echo "$i.ppm $((i % 10))" >>"$root/list.txt"
  done
  "$trainer" dataset images "$root" "$root/list.txt" "$root/lmdb" >/dev/null 2>&1
  "$trainer" dataset mean "$root/lmdb" "$root/mean.binaryproto" >/dev/null 2>&1
}

# noise_net NET FOLDER SIDE BATCH: prints the net of file NET with those images as its data.
noise_net() {
  sed -E -e "s#source: \"[^\"]*\"#source: \"$2/images$3/lmdb\"#" \
    -e "s#mean_file: \"[^\"]*\"#mean_file: \"$2/images$3/mean.binaryproto\"#" \
    -e "s#batch_size: [0-9]+#batch_size: $4#" "$1"
}
