# Helpers of build.sh, run.sh and test.sh; to be sourced. Sets `root` and works there.
# TRAINER_PRESET is the CMake preset (release), TRAINER_TARGETS the targets (all), TRAINER_JOBS the
# number of parallel jobs (one per core).
# shellcheck shell=bash
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd "$root" || exit
preset="${TRAINER_PRESET:-release}"
jobs="${TRAINER_JOBS:-$(nproc)}"

say() { printf '%s\n' "$*"; }

# Configures and builds. Prints what the project itself notes while it is configured ("trainer: ..."),
# every tenth part of the progress and all errors, and writes the whole output to build/<preset>.log.
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
  sed -n 's/^trainer: /build: /p' "$log"
  if ! cmake --build --preset "$preset" -j "$jobs" "${targets[@]}" 2>&1 | tee -a "$log" |
    show_build_progress; then
    awk '/^FAILED:/ { seen = 1 } seen && ++lines <= 80' "$log" >&2
    say "build: failed; the whole text is in $root/$log" >&2
    return 1
  fi
}

# Runs awk so that it handles each line at once; mawk would wait for a full block.
live_awk() {
  if awk -W version 2>&1 </dev/null | grep -q mawk; then awk -W interactive "$@"; else awk "$@"; fi
}

# Reads Ninja's lines, "[12/340] Building ...".
show_build_progress() {
  live_awk -F'[][/]' '
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

# run_tests [ctest flags...]: prints every tenth part of the progress, the tests that fail, and the
# summary.
run_tests() {
  local log="build/$preset-tests.log" failed="build/$preset/Testing/Temporary/LastTestsFailed.log"
  rm -f "$failed"
  if ! ctest --preset "$preset" -j "$jobs" --no-label-summary "$@" 2>&1 | tee "$log" |
    show_test_progress && ! pass_alone "$failed" "$log"; then
    say "test: failed; the whole text is in $root/$log" >&2
    return 1
  fi
}

# pass_alone <file with failed entries> <log>: tests of whole programs, ranks and terminals (label
# "integration") also depend on the load of the machine. If at most three of them failed (in CI
# one), and no other test, runs them again one at a time and names the tests that now pass.
pass_alone() {
  local most=3 entries shards known names cases=() others=()
  [[ "${CI:-}" != true ]] || most=1
  entries="$(cut -d: -f2- "$1" 2>/dev/null)" && [[ -n "$entries" ]] || return 1
  known="$(ctest --preset "$preset" -N -L '^integration$' | sed -nE 's/^ *Test +#[0-9]+: //p')"
  ! grep -qvxFf <(printf '%s\n' "$known") <<<"$entries" || return 1
  mapfile -t others < <(grep -vE '^cli\.[0-9]+of[0-9]+$' <<<"$entries")
  # Reruns only the failed tests of a failed shard. If a test crashed or hung, the shard has not run
  # all of its tests.
  shards="$(grep -cE '^cli\.[0-9]+of[0-9]+$' <<<"$entries")"
  if ((shards > 0)); then
    (($(grep -cE '^ *[0-9]+ FAILED TESTS?$' "$2") == shards)) || return 1
    mapfile -t cases < <(sed -nE 's/^\[  FAILED  \] ([^ ,]+\.[^ ,]+).*/\1/p' "$2" | sort -u)
  fi
  ((${#cases[@]} + ${#others[@]} <= most)) || return 1
  names="${cases[*]}${cases:+${others:+ }}${others[*]}"
  say "test: once more, alone: $names"
  run_again "$(IFS=: && echo "${cases[*]}")" "$(IFS='|' && echo "${others[*]}")" 2>&1 |
    tee -a "$2" | show_test_progress || return 1
  say "test: failed beside others and passed alone, see above: $names"
}

# run_again <filter of cli_test> <pattern of entries>: either argument may be empty.
run_again() {
  if [[ -n "$1" ]]; then
    timeout 600 "build/$preset/tests/cli_test" --gtest_filter="$1" || return
  fi
  [[ -z "$2" ]] || ctest --preset "$preset" --no-label-summary -R "^($2)\$"
}

# Reads CTest's lines, "  12/110 Test  #12: name ....   Passed    0.01 sec", and GoogleTest's.
# Leaves out the output of tests that passed. Prints the whole output of a test that ended its
# program.
show_test_progress() {
  live_awk '
    BEGIN { begin = systime() }
    /^ *Start +[0-9]+: / || /^Test project / || (/^$/ && !closing) { next }
    /^ *[0-9]+\/[0-9]+ Test +#/ || /% tests passed/ { show() }
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*( |\.)(Passed|\*\*\*Skipped)/ {
      split($1, part, "/")
      step = int(10 * part[1] / part[2])
      if (step > last) {
        print "test: " part[1] " of " part[2] ", " systime() - begin " s"
        fflush()
        last = step
      }
      next
    }
    function show() { printf "%s", held; held = "" }
    /^\[ RUN      \] / { show(); held = $0 "\n"; next }
    /^\[       OK \] / || /^\[  SKIPPED \] / { held = ""; next }
    /^\[[-=]+\] / && held == "" { next }
    held != "" && !/^\[  FAILED  \] / { held = held $0 "\n"; next }
    /% tests passed/ { closing = 1 }
    { show(); print; fflush() }
    END { show() }'
}
