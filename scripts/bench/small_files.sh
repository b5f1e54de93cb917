#!/usr/bin/env bash
# scripts/bench/small_files.sh TRAINER [FILES] [FOLDER]: reads small picture files one by one, and
# the same pictures packed into an HDF5 file, an LMDB and a tar file with one command each. FOLDER
# is on the file system to measure. Cold means that the system has dropped the files from its cache.
set -euo pipefail

trainer="$(realpath "$1")"
files="${2:-10000}"
folder="$(mktemp -d "${3:-${TMPDIR:-/tmp}}/small_files_XXXXXX")"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Makes FILES grey pictures of 32 x 32 pixels with noise, about 1 KiB each, in ten classes.
python3 - "$files" <<'PYTHON'
import os, random, sys
random.seed(1)
for i in range(int(sys.argv[1])):
    os.makedirs(f"pictures/{i % 10}", exist_ok=True)
    with open(f"pictures/{i % 10}/{i:06}.pgm", "wb") as file:
        file.write(b"P5\n32 32\n255\n" + random.randbytes(1024))
PYTHON

"$trainer" dataset pack pictures set.tar --gray --minloglevel=1 >/dev/null
"$trainer" dataset images pictures set_lmdb --gray --minloglevel=1 >/dev/null
"$trainer" dataset images pictures set.h5 --gray --minloglevel=1 >/dev/null

# Reads all files and prints how many per second.
read_files() {
  python3 - "$1" <<'PYTHON'
import os, pathlib, sys, time
paths = sorted(str(path) for path in pathlib.Path("pictures").rglob("*.pgm"))
if sys.argv[1] == "cold":
    os.sync()
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
start = time.perf_counter()
for path in paths:
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 1 << 20)
    os.close(fd)
print(round(len(paths) / (time.perf_counter() - start)))
PYTHON
}

# Prints the records per second of a set, "cold" or "warm".
read_set() {
  awk -v cache="$2" '/^one after the other/ { at = (cache == "cold") ? 1 : 2; if (++n == at) print $(NF - 1) }' \
    <<<"$("$trainer" dataset bench "$1" --seconds=20 --minloglevel=1)"
}

printf '%-24s %8s %12s %12s\n' "$files pictures in" files 'cold 1/s' 'warm 1/s'
printf '%-24s %8s %12s %12s\n' 'single files' "$files" "$(read_files cold)" "$(read_files warm)"
for set in set.h5 set_lmdb set.tar; do
  printf '%-24s %8s %12s %12s\n' "$set" "$(find "$set" -type f ! -name 'lock.mdb' | wc -l)" \
    "$(read_set "$set" cold)" "$(read_set "$set" warm)"
done
