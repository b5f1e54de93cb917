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
    BEGIN { begin = systime() }
    /^\[[0-9]+\/[0-9]+\]/ {
      step = int(10 * $2 / $3)
      if (step > last) {
        print "build: " $2 " of " $3 " steps, " systime() - begin " s"
        fflush()
        last = step
      }
    }
    /no work to do/ { print "build: up to date" }'
}

# run_tests [ctest flags...]: shows every tenth part, what fails in full, and the closing lines.
run_tests() {
  local log="build/$preset-tests.log" failed="build/$preset/Testing/Temporary/LastTestsFailed.log"
  rm -f "$failed"
  if ! ctest --preset "$preset" -j "$jobs" --no-label-summary "$@" 2>&1 | tee "$log" |
    show_test_progress && ! pass_alone "$failed" "$log"; then
    say "test: failed; the whole text is in $root/$log" >&2
    return 1
  fi
}

# pass_alone <file with failed tests> <log>: whole programs, ranks and terminals also depend on what
# else the machine does. Where at most three of such tests failed (label "integration") and no other
# test, these run again, one by one; those that pass now are named. Others fail once and for all.
pass_alone() {
  local count names again=(ctest --preset "$preset" --rerun-failed --no-label-summary)
  count="$(wc -l 2>/dev/null <"$1")" && ((count > 0 && count <= 3)) || return 1
  # Of either list the tests' numbers: "  Test #12: name" and "12:name".
  ctest --preset "$preset" -N -L '^integration$' |
    awk -F'[#:]' 'NR == FNR { if (/^ *Test +#/) known[$2 + 0]; next } !($1 in known) { exit 1 }' - "$1" ||
    return 1
  names="$(cut -d: -f2- "$1" | paste -sd ' ')"
  say "test: once more, alone: $names"
  "${again[@]}" 2>&1 | tee -a "$2" | show_test_progress || return 1
  say "test: failed beside others and passed alone, see above: $names"
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
