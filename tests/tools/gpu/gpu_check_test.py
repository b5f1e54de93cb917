"""scripts/gpu/check.sh as a whole: without a GPU, and on an emulated one.

    gpu_check_test.py TRAINER [TRAINER_ON_AN_EMULATED_GPU]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAINER = sys.argv.pop(1)
EMULATED = sys.argv.pop(1) if len(sys.argv) > 1 else ""
NEED_A_GPU = {"libraries", "device_tests", "gpu_losses", "accuracy", "speed", "more_speed", "fed",
              "repeats", "other_device", "faults", "stops", "two_gpus", "profile", "kernels",
              "sanitized", "filling"}


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = pathlib.Path(folder.name)
        (self.bundle / "tests").mkdir()
        for name in ("models", "scripts"):
            (self.bundle / name).symlink_to(ROOT / name)
        self.use(TRAINER)

    def use(self, program):
        (self.bundle / "trainer").unlink(missing_ok=True)
        (self.bundle / "trainer").symlink_to(program)

    def check(self, *flags, **environment):
        results = self.bundle / "results"
        done = subprocess.run(
            [ROOT / "scripts/gpu/check.sh", f"--root={self.bundle}", f"--results={results}",
             "--python=none", *flags],
            text=True, capture_output=True, check=False, env={**os.environ, **environment})
        if not results.exists():
            return done, None
        self.assertIn((results / "summary.txt").read_text(), done.stdout)
        return done, json.loads((results / "results.json").read_text())

    def test_says_which_steps_are_left_out_and_why(self):
        steps = ",".join(NEED_A_GPU | {"device_query", "refusal", "cpu_losses"})
        done, report = self.check(f"--only={steps}", "--seconds=2000")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = {row["step"]: row for row in report["steps"]}
        left_out = {name for name, row in rows.items() if "left_out" in row}
        self.assertEqual(left_out, NEED_A_GPU)
        for name in NEED_A_GPU:
            self.assertIn("CUDA", rows[name]["left_out"])
            self.assertIn(f"left out  {name}: ", done.stdout)
        self.assertEqual(report["gpus"], [])
        self.assertRegex(done.stdout, r"\n\d+ passed, 0 failed; .* 16 steps left out; ")

    def test_a_step_that_fails_decides_the_exit_code(self):
        self.use("/bin/false")
        done, report = self.check("--only=device_query")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(report["failed"], 1)
        self.assertIn("FAILED    device_query", done.stdout)

    def test_keeps_to_its_time(self):
        done, report = self.check("--only=device_query,cpu_losses", "--seconds=1")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual({row["left_out"] for row in report["steps"]}, {"no time is left"})

    @unittest.skipUnless(EMULATED, "this build has no emulated GPU")
    def test_the_steps_of_a_gpu_work_on_an_emulated_one(self):
        self.use(EMULATED)
        done, report = self.check("--dry", "--only=device_query,libraries,speed,stops,profile",
                                  TRAINER_EMULATED_GPU="gpus=1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = {row["step"]: row for row in report["steps"]}
        self.assertEqual({name for name, row in rows.items()
                          if not row.get("passed") or not row.get("whole")}, set())
        names = [figure["name"] for figure in rows["speed"]["figures"]]
        self.assertEqual(names, ["lenet f16 bs64", "cifar10_quick f32 bs100"])
        self.assertIn("of the byte roofline", rows["profile"]["lines"][0])
        self.assertIn("Convolution", (self.bundle / "results/profile.txt").read_text())

    @unittest.skipUnless(EMULATED, "this build has no emulated GPU")
    def test_fails_for_layers_that_no_library_computes(self):
        self.use(EMULATED)
        for refused, reason in (
                ("cublasLtMatmulAlgo", r"'ip1', 'ip2' \(.*: cublasLt: "),
                ("cudnnGetConvolutionForward", r"'conv1', 'conv2' \(.*: forward: cuDNN: ")):
            done, report = self.check("--dry", "--only=libraries",
                                      TRAINER_EMULATED_GPU=f"refuse={refused}")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            notes = "\n".join(sorted(report["steps"][0]["notes"]))
            self.assertRegex(notes, "^" + "\n".join(
                f"lenet {mode}: no library computes {reason}.*" for mode in ("bf16", "f16", "f32"))
                + "$")

    def test_without_a_program_says_what_to_give(self):
        self.use(self.bundle / "nowhere")
        done, _ = self.check()
        self.assertEqual(done.returncode, 2)
        self.assertIn("trainer is not there; give --trainer=PROGRAM", done.stderr)

    def test_refuses_an_unknown_step(self):
        done, _ = self.check("--only=sped")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no step 'sped'", done.stderr)


if __name__ == "__main__":
    unittest.main()
