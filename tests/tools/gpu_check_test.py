"""scripts/gpu/check.sh where there is no GPU: what runs, and why the rest is left out.

    gpu_check_test.py TRAINER [TRAINER_ON_AN_EMULATED_GPU]
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINER = sys.argv.pop(1)
EMULATED = sys.argv.pop(1) if len(sys.argv) > 1 else ""
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts/gpu"))
import check as gpu_check  # noqa: E402
import steps as gpu_steps  # noqa: E402
NEED_A_GPU = {"device_tests", "gpu_losses", "gpu_losses_bf16", "gpu_losses_f16", "repeats",
              "two_gpus", "stops", "memory", "filling", "sanitized", "speed"}


class CheckWithoutAGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = pathlib.Path(folder.name)
        (self.bundle / "tests").mkdir()
        for name in ("models", "scripts"):
            (self.bundle / name).symlink_to(ROOT / name)
        (self.bundle / "trainer").symlink_to(TRAINER)

    def check(self, *flags, **environment):
        report = self.bundle / "report.json"
        done = subprocess.run(
            [ROOT / "scripts/gpu/check.sh", f"--root={self.bundle}", f"--json={report}", *flags],
            text=True, capture_output=True, check=False,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment})
        return done, json.loads(report.read_text()) if report.exists() else None

    def test_says_which_steps_are_left_out_and_why(self):
        steps = ",".join(NEED_A_GPU | {"device_query", "refusal", "cpu_losses"})
        done, report = self.check(f"--only={steps}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = {row["step"]: row for row in report["steps"]}
        left_out = {name for name, row in rows.items() if "left_out" in row}
        self.assertEqual(left_out, NEED_A_GPU)
        for name in NEED_A_GPU:
            self.assertIn("CUDA", rows[name]["left_out"])
            self.assertIn(f"left out  {name}: ", done.stdout)
        self.assertEqual(report["gpus"], [])
        self.assertEqual(rows["cpu_losses"]["passed"], 1)
        self.assertRegex(done.stdout, r"\n\d+ passed, 0 failed; 11 steps left out; ")

    def test_a_step_that_fails_decides_the_exit_code(self):
        (self.bundle / "trainer").unlink()
        (self.bundle / "trainer").symlink_to("/bin/false")
        done, report = self.check("--only=device_query")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(report["failed"], 1)
        self.assertIn("FAILED    device_query", done.stdout)

    def test_keeps_to_its_time(self):
        done, report = self.check("--only=device_query,cpu_losses", "--seconds=1")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual({row["left_out"] for row in report["steps"]}, {"no time is left"})

    def test_a_step_that_hangs_is_ended_and_the_next_one_runs(self):
        def hang(_bundle, result, _seconds):
            result.check(True, "")
            while True:
                time.sleep(1)

        before = signal.signal(signal.SIGALRM, gpu_check.end_step)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        bundle = gpu_check.Bundle(self.bundle, self.bundle)
        row = gpu_check.run_step(gpu_steps.Step(hang, 0.1), bundle, 60)
        self.assertEqual((row["passed"], row["failed"]), (1, 1))
        self.assertIn("took more than its 0 s", row["notes"])
        row = gpu_check.run_step(gpu_steps.Step(lambda *_: None, 5), bundle, 60)
        self.assertEqual(row["failed"], 0)

    @unittest.skipUnless(EMULATED, "this build has no emulated GPU")
    def test_the_steps_of_a_gpu_work_on_an_emulated_one(self):
        (self.bundle / "trainer").unlink()
        (self.bundle / "trainer").symlink_to(EMULATED)
        done, report = self.check("--dry", "--only=device_query,gpu_losses_f16,stops,memory",
                                  TRAINER_EMULATED_GPU="gpus=1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([row["step"] for row in report["steps"] if row.get("passed", 0) == 0], [])

    def test_refuses_an_unknown_step(self):
        done, _ = self.check("--only=sped")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no step 'sped'", done.stderr)


if __name__ == "__main__":
    unittest.main()
