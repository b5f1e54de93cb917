"""scripts/check_format.sh fails on C++ that clang-format would change."""

import shutil
import sys
import unittest

from bad_tree import ROOT, TreeTest


class FormatTest(TreeTest):
    def check(self, text):
        shutil.copy(ROOT / ".clang-format", self.tree)
        self.write("src/a file.cc", text)
        return self.run_script("check_format.sh", TRAINER_LINT_ROOT=str(self.tree))

    def test_passes_on_formatted_code(self):
        status, out = self.check("int F() { return 1; }\n")
        self.assertEqual(status, 0, out)

    def test_fails_on_other_code_and_names_the_line(self):
        status, out = self.check("\nint  F( ){return 1;}\n")
        self.assertNotEqual(status, 0)
        self.assertIn("a file.cc:2:", out)

    def test_says_that_it_is_skipped_without_the_tool(self):
        tools = self.tree / "bin"
        tools.mkdir()
        for tool in ("bash", "dirname"):
            (tools / tool).symlink_to(shutil.which(tool))
        status, out = self.run_script("check_format.sh", PATH=str(tools))
        self.assertEqual(status, 77)
        self.assertIn("format: skipped, clang-format 14 is not installed", out)


if __name__ == "__main__":
    if not shutil.which("clang-format-14"):
        print("skipped: clang-format 14 is not installed")
        sys.exit(77)
    unittest.main()
