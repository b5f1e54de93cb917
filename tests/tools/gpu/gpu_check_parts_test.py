"""Tests the parts of scripts/gpu/check.py that need neither a GPU nor PyTorch.

    gpu_check_parts_test.py
"""

import csv
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from in_a_folder import PATIENT, ROOT, InAFolder  # first: it adds the folder of the next ones

import check
import children
import correctness
import peers as gpu_peers
import profiling
import report as gpu_report
import speed
import steps

NEED_NO_GPU = ("refusal", "cpu_losses")


def nothing(*_):
    pass


def hang(_bundle, result, _seconds):
    result.check(True, "")
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        time.sleep(1)


def is_gone(stat):
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class TimesTest(InAFolder):
    def test_all_steps_of_a_gpu_fit_with_a_margin(self):
        wanted = sum(step.seconds for step in steps.ALL if step.name not in NEED_NO_GPU)
        self.assertLessEqual(wanted, check.TOTAL_SECONDS - check.MARGIN)

    def test_a_step_takes_what_others_left_but_not_what_others_need(self):
        first, second = steps.Step(nothing, 10), steps.Step(nothing, 30)
        self.assertEqual(check.time_of(first, [second], 100), 20)
        self.assertEqual(check.time_of(first, [second], 45), 15)
        self.assertEqual(check.time_of(first, [second], 40), 10)
        self.assertEqual(check.time_of(first, [second], 35), 10)
        self.assertEqual(check.time_of(second, [], 7), 7)

    def test_a_step_that_hangs_is_ended_and_the_next_one_runs(self):
        before = signal.signal(signal.SIGALRM, check.end_step)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        told = []
        row = check.run_step(steps.Step(hang, 4), self.bundle(), PATIENT, told.append)
        self.assertEqual((row["passed"], row["failed"], row["whole"]), (1, 0, False))
        self.assertEqual(told[0]["passed"], 1)
        self.assertFalse(told[0]["ended"])
        self.assertIn("took more than its 240 s", row["notes"][0])
        self.assertIn("in part", gpu_report.verdict(row))
        row = check.run_step(steps.Step(nothing, 5), self.bundle(), 60)
        self.assertEqual((row["failed"], row["ended"]), (0, True))

    def test_a_program_ends_with_all_that_it_started(self):
        pids = self.folder / "pids"
        process = children.start(["sh", "-c", f"sleep 600 & echo $! >{pids}.part; "
                                  f"mv {pids}.part {pids}; while :; do sleep 1; done"])
        self.wait_for(pids.exists)
        children.end_all()
        self.assertEqual(process.wait(PATIENT), -signal.SIGKILL)
        stat = pathlib.Path(f"/proc/{pids.read_text().strip()}/stat")
        self.wait_for(lambda: is_gone(stat))


class ReportTest(InAFolder):
    def test_a_figure_is_met_or_missed(self):
        figures = [gpu_report.Figure("speed", 1.2345, "times", least=1.3),
                   gpu_report.Figure("memory", 0.9, "times", most=0.9),
                   gpu_report.Figure("rate", 12.0, "images/s")]
        self.assertEqual([figure.line() for figure in figures],
                         ["speed: 1.234 times (at least 1.3) MISSED",
                          "memory: 0.9 times (at most 0.9) met", "rate: 12 images/s"])

    def test_both_files_have_all_at_any_time(self):
        told = gpu_report.Report(self.folder / "results", self.bundle(), lambda: 7.0)
        result = gpu_report.Result(lambda: told.add(result.row("speed", 3, False)))
        result.check(True, "")
        result.measure("lenet, speed", 1.5, "times PyTorch's", least=1.3)
        whole = json.loads((self.folder / "results/results.json").read_text())
        self.assertEqual((whole["passed"], whole["met"]), (1, 1))
        summary = (self.folder / "results/summary.txt").read_text()
        self.assertIn("under way speed: 1 passed, 0 failed (3 s)\n"
                      "          lenet, speed: 1.5 times PyTorch's (at least 1.3) met\n", summary)
        result.fail("a sentence")
        told.add(result.row("speed", 4, True))
        summary = (self.folder / "results/summary.txt").read_text()
        self.assertIn("FAILED    speed: 1 passed, 1 failed (4 s)", summary)
        self.assertIn("          a sentence\n1 passed, 1 failed; 1 figures met, 0 missed; ",
                      summary)

    def test_the_written_summary_is_returned(self):
        clock = itertools.count(7)  # time passes between the calls
        told = gpu_report.Report(self.folder / "results", self.bundle(), lambda: next(clock))
        summary = told.write()
        self.assertEqual(summary, (self.folder / "results/summary.txt").read_text())

    def test_a_run_that_is_ended_keeps_what_it_found(self):
        results = self.folder / "results"
        with subprocess.Popen(
                [sys.executable, "-B", ROOT / "scripts/gpu/check.py", "--trainer=/bin/false",
                 "--only=device_query,cpu_losses", f"--results={results}"],
                stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()  # communicate() would lose what readline() buffered
        self.assertIn("device_query", first)
        self.assertIn("FAILED    device_query: ", rest)
        self.assertEqual(json.loads((results / "results.json").read_text())["failed"] > 0, True)

    def test_results_that_cannot_be_written_are_a_sentence(self):
        (self.folder / "file").write_text("")
        done = subprocess.run(
            [sys.executable, "-B", ROOT / "scripts/gpu/check.py", "--trainer=/bin/false",
             f"--results={self.folder}/file/in"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^check: no results can be written: .*--results=FOLDER\n$")


class OutputTest(InAFolder):
    def test_tests_count_that_ended_in_a_program_that_did_not(self):
        text = ("[ RUN      ] A.One\n[       OK ] A.One (3 ms)\n"
                "[ RUN      ] A.Two/0\nfile.cc:3: Failure\nValue of: x\n"
                "[  FAILED  ] A.Two/0, where GetParam() = 8 (2 ms)\n"
                "[ RUN      ] A.Three\na.cc:3: Skipped\nno GPU\n\n[  SKIPPED ] A.Three (0 ms)\n"
                "[ RUN      ] A.Four\n")
        result = gpu_report.Result()
        skipped = correctness.count_tests(result, "a_test 0", text, None)
        self.assertEqual((result.passed, result.failed, result.skipped), (1, 1, 1))
        self.assertEqual(skipped, {"no GPU": ["A.Three"]})
        self.assertEqual(result.details["a_test 0, skipped"], skipped)
        self.assertFalse(result.whole)
        self.assertEqual(result.notes[1], "a_test 0: no time was left after 3 tests, in A.Four")
        self.assertIn("A.Two/0: ", result.notes[0])
        self.assertIn("Value of: x", result.notes[0])
        result = gpu_report.Result()
        correctness.count_tests(result, "a_test 0", text, -11)
        self.assertEqual(result.failed, 2)
        self.assertIn("a_test 0 ended with -11 in A.Four: ", result.notes[1])

    def test_kernels_are_added_up_by_name(self):
        lines = ['"ID","Kernel Name","gpu__time_duration.sum",'
                 '"dram__throughput.avg.pct_of_peak_sustained_elapsed"', '"","","ns","%"',
                 '"0","a","1,000","80"', '"1","b","500","10"', '"2","a","2,500","40"']
        found = profiling.kernel_lines(csv.DictReader(lines))
        self.assertEqual(found, [" 87.5%    2 x   0.0018 ms  51.4% dram  a",
                                 " 12.5%    1 x   0.0005 ms  10.0% dram  b"])

    def test_kernels_that_were_counted_before_an_end_are_reported(self):
        out = self.folder / "ncu.csv"
        out.write_text('==PROF== started\n"ID","Kernel Name","gpu__time_duration.sum",'
                       '"dram__throughput.avg.pct_of_peak_sustained_elapsed"\n"","","ns","%"\n'
                       '"0","a","1,000","80"\n')
        put = {}
        bundle = self.bundle()
        bundle.put_result = put.__setitem__
        result = gpu_report.Result()
        result.cut("late")
        profiling.read_kernels(bundle, result, out, "")
        self.assertEqual((result.passed, result.failed), (1, 0))
        self.assertIn("80.0% dram  a", put["kernels.txt"])
        profiling.read_kernels(bundle, gpu_report.Result(), self.folder / "none", "no permission")
        self.assertEqual(put["kernels.txt"], "\n")

    def test_library_kernels_are_left_out_under_either_name_of_the_filter(self):
        self.assertEqual(correctness.sanitizer_flags("  --kernel-regex arg  --report-api-errors"),
                         ["--error-exitcode=99", "--kernel-regex", "kns=trainer",
                          "--report-api-errors", "no"])
        self.assertEqual(correctness.sanitizer_flags("  --filter arg"),
                         ["--error-exitcode=99", "--filter", "kns=trainer"])

    def test_the_warning_about_own_kernels_is_found(self):
        text = ("W1127 run.cc:3] these layers use the program's own kernels on the GPU, which may "
                "be 10 to 100 times slower than those of cuDNN and cuBLAS: 'conv', 'ip'; the first "
                "one because of net.prototxt:4:1: forward: cuDNN: no; 'trainer device_query' lists"
                "\n")
        found = correctness.OWN_KERNELS.search(text)
        self.assertEqual(found.groups(), ("'conv', 'ip'", "net.prototxt:4:1: forward: cuDNN: no"))

    def test_tells_what_becomes_of_bias_relu_and_nan(self):
        names = ["cuDNN algorithm 1 with bias and ReLU, weight gradient cuDNN algorithm 0",
                 "cuDNN algorithm 1, bias and ReLU apart, data gradient cuDNN algorithm 1",
                 "cuDNN algorithm 0, bias apart, weight gradient cuDNN algorithm 0", "cublasLt"]
        times = {"layers": [{"implementation": name} for name in names]}
        self.assertEqual(list(profiling.fused_lines(times)),
                         ["bias and ReLU in cuDNN's call: 1 of 2 convolutions",
                          "bias in cuDNN's call: 0 of 1 convolutions"])
        chosen = self.folder / "measured"
        self.assertIn("for 0 shapes", profiling.nan_line(chosen))
        chosen.write_text("# a head\n" + "".join(
            f"0\tGPU, driver\t{key}\t{value}\n" for key, value in (
                ("forward 1", "1 1 1"), ("forward 2", "1 1 2"), ("forward 3", "0 1 2"),
                ("forward 4", "1 1 3 4096"), ("weight gradient 1", "1 1 0"))))
        self.assertEqual(profiling.nan_line(chosen),
                         "cuDNN's call with bias and ReLU keeps NaN for 2 shapes (1 asked to "
                         "propagate it), gives 0 for 2; 0 have none")


class PeersTest(InAFolder):
    """Tests Peers with scripts that answer like peer.py, without PyTorch."""

    def test_bring_the_libraries_of_their_python(self):
        self.bundle(python=sys.executable)
        self.assertEqual(os.environ["VIRTUAL_ENV"], sys.prefix)

    def peers(self, script):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\n" + script)
        python.chmod(0o755)
        bundle = self.bundle(python=str(python))
        patience, gpu_peers.PATIENCE = gpu_peers.PATIENCE, PATIENT
        self.addCleanup(setattr, gpu_peers, "PATIENCE", patience)
        peers = gpu_peers.Peers(bundle, speed.DRY_ROWS)
        self.addCleanup(peers.close)
        return peers

    def test_are_asked_when_all_are_ready(self):
        peers = self.peers('echo \'{"ready": true, "setting": "compile, x", "torch": "2", '
                           '"cudnn": 9}\'; while read seconds; do echo "{\\"ms\\": 4}"; done')
        peers.settle(list(peers.peers), PATIENT)
        for peer in peers.peers.values():
            peer.quiet()
            self.assertEqual((peer.setting, peer.sample(0.1)), ("compile, x", {"ms": 4}))

    def test_without_pytorch_say_so(self):
        peers = self.peers("echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1")
        peers.settle(list(peers.peers), PATIENT)
        for peer in peers.peers.values():
            self.assertFalse(peer.ready(0))
            self.assertEqual(peer.setting,
                             "no PyTorch: ModuleNotFoundError: No module named 'torch'")

    def test_that_compile_for_too_long_are_replaced(self):
        peers = self.peers('case "$*" in *compile=no*) echo \'{"ready": true, "setting": "eager", '
                           '"torch": "2", "cudnn": 9}\';; esac; while read s; do :; done')
        peers.settle(list(peers.peers), 0.5)
        for peer in peers.peers.values():
            self.assertTrue(peer.ready(PATIENT))
            self.assertEqual(peer.setting, "eager")

    def test_of_other_rows_pause_while_some_are_measured(self):
        # The shell starts no process here, because it cannot be stopped while it starts one.
        peers = self.peers('case "$*" in *sys.prefix*) exit;; *lenet*) echo \'{"ready": true, '
                           '"setting": "x", "torch": "2", "cudnn": 9}\';; esac; '
                           'while read s; do :; done')
        first, other = peers.peers
        peers.settle([first], PATIENT)
        stat = pathlib.Path(f"/proc/{peers.peers[other].process.pid}/stat")
        self.wait_for(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T")
        peers.go_on()
        self.wait_for(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] != "T")

    def test_that_end_on_the_way_are_told(self):
        peers = self.peers('echo \'{"ready": true, "setting": "eager", "torch": "2", '
                           '"cudnn": 9}\'; read s')
        peers.settle(list(peers.peers), PATIENT)
        for peer in peers.peers.values():
            self.assertIsNone(peer.sample(0.1))
            self.assertEqual(peer.setting, "eager (ended on the way)")


if __name__ == "__main__":
    unittest.main()
