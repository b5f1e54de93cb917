"""run_tests of scripts/common.sh, with a project of made-up tests."""

import json
import unittest

from bad_tree import ROOT, TreeTest

# Fails the first time that it runs.
ONCE = 'if [ -e "$1" ]; then echo passed now; else : > "$1"; echo disturbed; exit 1; fi'

# A shard of cli_test in which the tests A.B and C.D/0 failed; run with a filter, it passes.
SHARD = """case "$*" in *--gtest_filter=A.B:C.D/0) echo ran again; exit;; esac
echo '[ RUN      ] A.A'
echo said by A.A
echo '[       OK ] A.A (1 ms)'
echo '[ RUN      ] A.B'
echo said by A.B
echo '[  FAILED  ] A.B (1 ms)'
echo '[ RUN      ] C.D/0'
[ -z "$CRASH" ] || exit 139
echo '[  FAILED  ] C.D/0, where GetParam() = 7 (1 ms)'
echo '[  FAILED  ] 2 tests, listed below:'
echo '[  FAILED  ] A.B'
echo '[  FAILED  ] C.D/0, where GetParam() = 7'
echo
echo ' 2 FAILED TESTS'
exit 1
"""


class RerunTest(TreeTest):
    def run_tests(self, tests, **env):
        """`tests`: of each its name, label and command."""
        self.write("once.sh", ONCE)
        self.write("build/p/tests/cli_test", "#!/bin/sh\n" + SHARD).chmod(0o755)
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
        return self.run_script(str(script), TRAINER_PRESET="p", TRAINER_JOBS="2",
                               **{"CI": "", "CRASH": "", **env})

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

    def test_in_ci_one_may_run_again(self):
        status, out = self.run_tests([self.once("b")], CI="true")
        self.assertEqual(status, 0, out)
        status, out = self.run_tests([self.once("c"), self.once("d")], CI="true")
        self.assertEqual(status, 1, out)
        self.assertNotIn("alone", out)

    def shard(self):
        return "cli.2of3", "integration", f"{self.tree}/build/p/tests/cli_test"

    def test_of_a_shard_the_failed_tests_run_again(self):
        status, out = self.run_tests([self.shard(), self.once("b")])
        self.assertEqual(status, 0, out)
        self.assertIn("said by A.B", out)
        self.assertNotIn("said by A.A", out)
        self.assertIn("test: once more, alone: A.B C.D/0 b\n", out)
        self.assertIn("ran again", out)

    def test_a_shard_that_crashed_fails_and_names_the_test(self):
        status, out = self.run_tests([self.shard()], CRASH="1")
        self.assertEqual(status, 1, out)
        self.assertIn("[ RUN      ] C.D/0", out)
        self.assertNotIn("alone", out)


if __name__ == "__main__":
    unittest.main()
