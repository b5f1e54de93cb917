#!/usr/bin/env bash
# Fuzzes the readers of files, each for a while, TRAINER_JOBS (2) at a time.
#   scripts/fuzz.sh [seconds per target, 600] [targets...]
# Needs clang-14 and its libFuzzer (apt-get install clang-14 libclang-rt-14-dev). Starts from
# tests/fuzz/corpus. Adds inputs to build/fuzz/corpus, and inputs that break the program to
# build/fuzz/findings. Exits with code 1 if there is a finding.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
seconds="${1:-600}"
shift || true
targets=("$@")
if ((${#targets[@]} == 0)); then
  for source in tests/fuzz/*_fuzz.cc; do
    targets+=("$(basename "$source" _fuzz.cc)")
  done
fi

# The names in the schema, for mutations of text.
write_dictionary() {
  grep -hoE '\b[A-Za-z_][A-Za-z0-9_]* = [0-9]+' proto/*.proto | cut -d' ' -f1 | sort -u |
    sed 's/.*/"&"/' >"$1"
}

fuzz_one() {
  local name="$1" work=build/fuzz
  mkdir -p "$work/corpus/$name" "$work/findings"
  "$work/tests/fuzz/${name}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
    -max_len=16384 -dict="$work/schema.dict" -artifact_prefix="$work/findings/$name-" \
    -print_final_stats=1 "$work/corpus/$name" "tests/fuzz/corpus/$name" >"$work/$name.log" 2>&1 ||
    { say "fuzz: $name: a finding, see build/fuzz/$name.log"; return 1; }
  say "fuzz: $name: $(sed -n 's/.*number_of_executed_units: *//p' "$work/$name.log") inputs in" \
    "$seconds s, no finding"
}
export -f fuzz_one say
export seconds

preset=fuzz TRAINER_TARGETS="$(printf '%s_fuzz ' "${targets[@]}")" build
write_dictionary build/fuzz/schema.dict
printf '%s\n' "${targets[@]}" | xargs -P "${TRAINER_JOBS:-2}" -I{} bash -c 'fuzz_one {}'
