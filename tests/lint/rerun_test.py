"""run_tests of scripts/common.sh, with a project of made-up tests."""

import json
import unittest

from bad_tree import ROOT, TreeTest

# Fails the first time that it runs.
ONCE = 'if [ -e "$1" ]; then echo passed now; else : > "$1"; echo disturbed; exit 1; fi'


class RerunTest(TreeTest):
    def run_tests(self, tests):
        """`tests`: of each its name, label and command."""
        self.write("once.sh", ONCE)
        lines = ["cmake_minimum_required(VERSION 3.25)", "project(p NONE)", "enable_testing()"]
        for name, label, command in tests:
            lines += [f"add_test(NAME {name} COMMAND {command})",
                      f"set_tests_properties({name} PROPERTIES LABELS {label})"]
        self.write("CMakeLists.txt", "\n".join(lines) + "\n")
        self.write("CMakePresets.json", json.dumps({
            "version": 6,
            "configurePresets": [{"name": "p", "generator": "Ninja",
                                  "binaryDir": "${sourceDir}/build/p"}],
            "testPresets": [{"name": "p", "configurePreset": "p",
                             "output": {"outputOnFailure": True}}]}))
        self.write("scripts/common.sh", (ROOT / "scripts/common.sh").read_text())
        script = self.write("scripts/run_tests.sh",
                            'set -euo pipefail\nsource "${BASH_SOURCE%/*}/common.sh"\n'
                            "cmake --preset p >/dev/null\nrun_tests\n")
        return self.run_script(str(script), TRAINER_PRESET="p", TRAINER_JOBS="2")

    def once(self, name, label="integration"):
        return name, label, f"bash {self.tree}/once.sh {self.tree}/{name}"

    def test_what_passes_passes(self):
        status, out = self.run_tests([("a", "unit", "true")])
        self.assertEqual(status, 0, out)
        self.assertIn("100% tests passed", out)
        self.assertNotIn("alone", out)

    def test_a_disturbed_program_runs_again_and_is_named(self):
        status, out = self.run_tests([self.once("b"), ("a", "unit", "true")])
        self.assertEqual(status, 0, out)
        self.assertIn("disturbed", out)
        self.assertIn("test: once more, alone: b\n", out)
        self.assertIn("test: failed beside others and passed alone, see above: b\n", out)

    def test_a_program_that_fails_twice_fails(self):
        status, out = self.run_tests([("b", "integration", "false")])
        self.assertEqual(status, 1, out)
        self.assertIn("test: once more, alone: b\n", out)
        self.assertIn("test: failed; the whole text is in", out)
        self.assertNotIn("passed alone", out)

    def test_a_unit_test_that_fails_once_fails(self):
        status, out = self.run_tests([self.once("b"), self.once("c", "unit")])
        self.assertEqual(status, 1, out)
        self.assertNotIn("alone", out)

    def test_many_that_fail_fail(self):
        status, out = self.run_tests([self.once(name) for name in "bcde"])
        self.assertEqual(status, 1, out)
        self.assertNotIn("alone", out)


if __name__ == "__main__":
    unittest.main()
