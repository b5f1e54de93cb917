# Helpers of build.sh, run.sh and test.sh; sourced, not run. Sets `root` and works there.
# TRAINER_PRESET chooses the CMake preset (release), TRAINER_TARGETS the targets (all),
# TRAINER_JOBS the parallel jobs (as many as there are cores).
# shellcheck shell=bash
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd "$root" || exit
preset="${TRAINER_PRESET:-release}"
jobs="${TRAINER_JOBS:-$(nproc)}"

say() { printf '%s\n' "$*"; }

# Configures and builds; shows every tenth part, keeps the whole text in build/<preset>.log, and
# shows what failed.
build() {
  local log="build/$preset.log" targets=()
  [[ -z "${TRAINER_TARGETS:-}" ]] || read -ra targets <<<"--target $TRAINER_TARGETS"
  mkdir -p build
  say "build: configuring ($preset)"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    say "build: CMake failed; the whole text is in $root/$log" >&2
    return 1
  fi
  if ! cmake --build --preset "$preset" -j "$jobs" "${targets[@]}" 2>&1 | tee -a "$log" |
    show_build_progress; then
    awk '/^FAILED:/ { seen = 1 } seen && ++lines <= 80' "$log" >&2
    say "build: failed; the whole text is in $root/$log" >&2
    return 1
  fi
}

# Reads Ninja's lines, "[12/340] Building ...".
show_build_progress() {
  awk -F'[][/]' '
    /^\[[0-9]+\/[0-9]+\]/ {
      step = int(10 * $2 / $3)
      if (step > last) { print "build: " $2 " of " $3 " steps"; fflush(); last = step }
    }
    /no work to do/ { print "build: up to date" }'
}

# run_tests [ctest flags...]: shows every tenth part, what fails in full, and the closing lines.
run_tests() {
  local log="build/$preset-tests.log"
  if ! ctest --preset "$preset" -j "$jobs" --no-label-summary "$@" 2>&1 | tee "$log" |
    show_test_progress; then
    say "test: failed; the whole text is in $root/$log" >&2
    return 1
  fi
}

# Reads CTest's lines, "  12/340 Test  #12: name ....   Passed    0.01 sec".
show_test_progress() {
  awk '
    /^ *Start +[0-9]+: / || /^Test project / || (/^$/ && !closing) { next }
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*( |\.)(Passed|\*\*\*Skipped)/ {
      split($1, part, "/")
      step = int(10 * part[1] / part[2])
      if (step > last) { print "test: " part[1] " of " part[2]; fflush(); last = step }
      next
    }
    /% tests passed/ { closing = 1 }
    { print; fflush() }'
}
