"""Tests the steps of scripts/gpu/check.py with scripts instead of their programs: their order, what
they start, and what they report if a program is late or fails.

    gpu_check_steps_test.py
"""

import argparse
import contextlib
import fnmatch
import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import unittest

from in_a_folder import PATIENT, ROOT, InAFolder  # first: it adds the folder of the next ones

import check
import children
import correctness
import profiling
import report as gpu_report
import speed
import steps

# The order that keeps what matters most if the run ends early.
ORDER = ["device_query", "libraries", "gpu_losses", "repeats", "speed", "device_tests",
         "more_speed", "profile", "kernels", "sanitized", "fed", "accuracy", "faults"]
# Prints on SIGINT, which is blocked until the handler is there.
WRITER = """import signal, sys
def write(*_):
    print("written")
    sys.exit(7)
signal.signal(signal.SIGINT, write)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
while True:
    signal.pause()
"""
NCU = """with open(sys.argv[sys.argv.index("--log-file") + 1], "w") as out:
        print('"ID","Kernel Name","gpu__time_duration.sum",'
              '"dram__throughput.avg.pct_of_peak_sustained_elapsed"', '"","","ns","%"',
              '"0","a","1,000","80"', sep="\\n", file=out)"""
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", re.MULTILINE)


def block_sigint():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def chooses(gtest_filter, test):
    wanted, _, unwanted = gtest_filter.partition("-")
    matches = [any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns.split(":"))
               for patterns in (wanted, unwanted)]
    return matches == [True, False]


def raises(_bundle, result, _seconds):
    result.check(True, "")
    raise ValueError("of a step")


def leaves(*_):
    sys.exit("of a program")


def passes(_bundle, result, _seconds):
    result.check(True, "")


class OrderTest(InAFolder):
    def test_what_matters_most_is_first(self):
        self.assertEqual([step.name for step in steps.ALL if step.name in ORDER], ORDER)
        on_a_gpu = [step for step in steps.ALL if "no gpu" not in step.needs]
        self.assertEqual((on_a_gpu[1].name, on_a_gpu[1].seconds), ("libraries", 15))
        self.assertEqual([row.key for row in speed.FIRST_ROWS],
                         [("resnet50", "f16"), ("resnet50", "bf16"), ("lenet", "f32")])

    def test_a_step_that_raises_does_not_end_the_run(self):
        self.set(steps, "ALL", tuple(steps.Step(run, 10) for run in (raises, leaves, passes)))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        bundle = self.bundle()
        told = gpu_report.Report(self.folder / "results", bundle, lambda: 0.0)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            check.run_all(argparse.Namespace(only="", seconds=100), bundle, told, lambda: 0.0)
        rows = json.loads((self.folder / "results/results.json").read_text())["steps"]
        self.assertEqual([(row["step"], row["passed"], row["failed"], row["ended"])
                          for row in rows],
                         [("raises", 1, 1, True), ("leaves", 0, 1, True), ("passes", 1, 0, True)])
        self.assertEqual(rows[0]["notes"], ["ValueError: of a step"])
        self.assertIn("FAILED    leaves: ", printed.getvalue())


class LateTest(InAFolder):
    def run_late(self, command):
        """Returns the exception of a program that takes too long, and its exit code."""
        started, start = [], children.start
        self.set(children, "start", lambda *given, **options: started.append(
            start(*given, **options)) or started[0])
        with self.assertRaises(subprocess.TimeoutExpired) as late:
            children.run(command, 0.1, preexec_fn=block_sigint)
        return late.exception, started[0].returncode

    def test_a_late_program_may_write(self):
        self.set(children, "WRITE_SECONDS", PATIENT)
        late, code = self.run_late([sys.executable, "-c", WRITER])
        self.assertEqual((late.stdout, late.stderr, code), ("written\n", "", 7))

    def test_a_late_program_that_ignores_sigint_is_killed(self):
        self.set(children, "WRITE_SECONDS", 0.1)
        late, code = self.run_late(["sleep", "600"])
        self.assertEqual((late.stdout, late.stderr, code), ("", "", -signal.SIGKILL))

    def test_late_kernels_are_reported_as_far_as_ncu_wrote_them(self):
        ncu = self.folder / "ncu"
        ncu.write_text(f"#!{sys.executable}\n" + WRITER.replace('print("written")', NCU))
        ncu.chmod(0o755)
        os.environ["PATH"] = f"{self.folder}:{os.environ['PATH']}"
        start, put, bundle = children.start, {}, self.bundle()
        self.set(children, "WRITE_SECONDS", PATIENT)
        self.set(children, "start", functools.partial(start, preexec_fn=block_sigint))
        bundle.put_result = put.__setitem__
        result = gpu_report.Result()
        profiling.kernels(bundle, result, 0.1)
        self.assertEqual((result.passed, result.failed, result.whole), (1, 0, False))
        self.assertIn("80.0% dram  a", put["kernels.txt"])

    def test_a_step_may_take_the_time_to_write(self):
        self.assertLess(children.WRITE_SECONDS, check.GRACE)
        self.assertLess(check.GRACE, check.MARGIN)

    def test_a_query_that_hangs_is_ended_and_the_run_goes_on(self):
        trainer = self.program("trainer", 'exec sleep 600\n')
        before = signal.signal(signal.SIGALRM, check.end_step)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        needs_gpu = steps.Step(lambda *_: self.fail("there is no GPU"), 1, ("gpu",))
        self.set(steps, "ALL", (needs_gpu, steps.Step(passes, 1), needs_gpu))
        for name in ("GRACE", "LEAST", "MARGIN"):
            self.set(check, name, 0)
        bundle, rows = self.bundle(trainer=trainer, dry=False), []
        with contextlib.redirect_stdout(io.StringIO()):
            check.run_all(argparse.Namespace(only="", seconds=3), bundle,
                          argparse.Namespace(add=rows.append), lambda: 0.0)
        first, second, third = (row for row in rows if row.get("ended", True))
        self.assertEqual((first["failed"], first["whole"]), (0, False))
        self.assertEqual(first["notes"], ["took more than its 1 s: not all of it was done"])
        self.assertEqual((second["passed"], third["left_out"]), (1, "trainer device_query failed"))

    def test_runs_without_time_are_reported_in_part(self):
        trainer = self.program("trainer", 'case "$1" in train) exec sleep 600;; esac\n')
        for step in (correctness.libraries, correctness.gpu_losses):
            result = gpu_report.Result()
            step(self.bundle(trainer=trainer), result, 0.1)
            self.assertEqual(sorted(result.notes), [f"lenet {mode}: no time was left"
                                                    for mode in ("bf16", "f16", "f32")])
            row = result.row(step.__name__, 1, True)
            self.assertEqual((row["failed"], row["whole"]), (0, False))
            self.assertIn("in part", gpu_report.verdict(row))

    def test_runs_that_fail_are_failures(self):
        trainer = self.program("trainer", 'case "$1" in train) echo "error: x" >&2; exit 65;; esac\n')
        result = gpu_report.Result()
        correctness.libraries(self.bundle(trainer=trainer), result, PATIENT)
        self.assertEqual((result.failed, result.whole), (3, True))
        self.assertIn("ended with 65: error: x", result.notes[0])


class NotesTest(InAFolder):
    NAMES = [f"'layer{i}'" for i in range(200)]

    def test_results_have_all_names_and_the_summary_says_how_many_it_lacks(self):
        told = gpu_report.Report(self.folder / "results", self.bundle(), lambda: 7.0)
        result = gpu_report.Result()
        note = "lenet f32: no library computes " + ", ".join(self.NAMES) + " (no)"
        for text in (note, "short", "third", "fourth"):
            result.fail(text)
        row = result.row("libraries", 3, True)
        told.add(row)
        whole = json.loads((self.folder / "results/results.json").read_text())
        self.assertEqual(whole["steps"][0]["notes"], [note, "short", "third", "fourth"])
        self.assertIn("          lenet f32: no library computes 'layer0', ... (199 more)\n"
                      "          short\n          (2 more in results.json)\n",
                      (self.folder / "results/summary.txt").read_text())
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            check.show(row)
        lines = printed.getvalue().splitlines()
        shown = len(re.findall(r"'layer\d+'", lines[1]))
        self.assertGreater(shown, 20)
        self.assertIn(f"'layer{shown - 1}', ... ({200 - shown} more)", lines[1])
        self.assertEqual(lines[2:], ["          short", "          third", "          fourth"])

    def test_a_text_without_names_says_how_long_it_is(self):
        self.assertEqual(gpu_report.shortened("one two", 7), "one two")
        self.assertEqual(gpu_report.shortened("ab " + "c" * 60, 40), "ab ... (61 characters)")

    def test_all_failed_tests_are_named(self):
        tests = [f"A.T{i}" for i in range(30)]
        text = "".join(f"[ RUN      ] {test}\nno\n[  FAILED  ] {test} (2 ms)\n" for test in tests)
        result = gpu_report.Result()
        correctness.count_tests(result, "a_test 0", text, 1)
        self.assertEqual(result.failed, 30)
        for test in tests:
            self.assertRegex("\n".join(result.notes), rf"{re.escape(test)}\b")


    def test_skipped_tests_are_named_with_their_reason(self):
        (self.folder / "tests").mkdir()
        for program, reason in (("optim_test", "NCCL 2 was not found"), ("net_test", "it has "
                                "this kernel"), ("layers_test", "NCCL 2 was not found")):
            about = "about the CPU alone: " if program == "net_test" else ""
            self.program(f"tests/{program}", f"""cat <<END
[ RUN      ] A.{program}
a.cc:3: Skipped
{about}{reason}

[  SKIPPED ] A.{program} (0 ms)
END
""")
        bundle, result = self.bundle(), gpu_report.Result()
        bundle.root = self.folder
        correctness.device_tests(bundle, result, PATIENT)
        note, = result.notes
        self.assertRegex(note, r"^skipped, NCCL 2 was not found: 'A\.\w+_test', ")
        self.assertEqual(set(re.findall(r"'A\.(\w+)'", note)), {"optim_test", "layers_test"})
        self.assertEqual(result.details["net_test 0, skipped"],
                         {"about the CPU alone: it has this kernel": ["A.net_test"]})


class StartsTest(InAFolder):
    def tool(self, name, script=""):
        """Puts a program on the path, which logs its arguments."""
        self.program(name, f'echo "$*" >>"{self.folder}/calls"\n{script}')
        os.environ["PATH"] = f"{self.folder}:{os.environ['PATH']}"

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def test_ncu_counts_few_kernels_and_leaves_the_caches(self):
        self.tool("ncu")
        profiling.kernels(self.bundle(dry=False), gpu_report.Result(), PATIENT)
        call, = self.calls()
        for flags in ("--launch-count 150", "--kill yes", "--cache-control none",
                      "--clock-control none", f"--log-file {self.folder}/ncu.csv"):
            self.assertIn(f" {flags} ", f" {call} ")

    def test_the_sanitizer_runs_tests_of_sums_on_deterministic_devices(self):
        self.tool("compute-sanitizer")
        result = gpu_report.Result()
        correctness.sanitized(self.bundle(trainer="/bin/true"), result, PATIENT)
        self.assertEqual(result.failed, 0)
        calls = {match[1]: call for call in self.calls()
                 if (match := re.search(r"--tool=(\w+)", call))}
        self.assertEqual(sorted(calls), ["memcheck", "racecheck", "synccheck"])
        self.assertIn(" --deterministic", calls["memcheck"])
        chosen = {}
        for name in ("racecheck", "synccheck"):
            given = re.search(r"--gtest_filter=(\S+)", calls[name])[1]
            for path in (ROOT / "tests/backend").glob("*_test.cc"):
                text = path.read_text(encoding="utf-8")
                for test in map(".".join, TEST.findall(text)):
                    if chooses(given, test):
                        chosen[test] = text
        self.assertGreater(len(chosen), 10)
        # Other tests ask MakeTestDevice, which is deterministic.
        self.assertEqual([test for test, text in chosen.items() if "MakeGpuDevice(" in text], [])

    def speed_of(self, row):
        """Returns the figures of a row, and how many programs it started."""
        (self.folder / "calls").unlink(missing_ok=True)
        bundle, result = self.bundle(trainer=self.folder / "trainer", dry=False), gpu_report.Result()
        bundle.used_memory = lambda: 1000
        peer = argparse.Namespace(setting="compile", quiet=lambda: None,
                                  sample=lambda seconds: {"ms": 2, "reserved_bytes": 4000})
        speed.compare(bundle, result, row, peer, PATIENT)
        return {figure.name: figure.value for figure in result.figures}, len(self.calls())

    def test_the_memory_is_that_of_a_timed_run(self):
        self.tool("trainer", 'for word; do case "$word" in --run=*) folder="${word#--run=}"; '
                  'mkdir -p "$folder"; echo \'{"kind": "gpu", "memory_bytes": 3000}\' '
                  '>"$folder/metrics.jsonl";; esac; done\n'
                  'echo "Iteration 1000000 (1000 iter/s, 1 s), loss = 1"\n')
        large, small = speed.FIRST_ROWS[0], speed.FIRST_ROWS[2]
        figures, starts = self.speed_of(large)
        self.assertEqual(figures[f"{large}, memory"], 0.5)
        self.assertEqual(starts, 1 + speed.ROUNDS)
        figures, starts = self.speed_of(small)
        self.assertNotIn(f"{small}, memory", figures)
        self.assertEqual(starts, 1 + speed.ROUNDS)


if __name__ == "__main__":
    unittest.main()
