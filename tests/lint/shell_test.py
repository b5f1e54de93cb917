"""scripts/check_shell.sh fails on what shellcheck finds."""

import shutil
import sys
import unittest

from bad_tree import TreeTest


class ShellTest(TreeTest):
    def check(self, text):
        self.write("scripts/jobs/a file.sh", "#!/bin/bash\n" + text)
        return self.run_script("check_shell.sh", TRAINER_LINT_ROOT=str(self.tree))

    def test_passes_on_a_clean_script(self):
        status, out = self.check('echo "$1"\n')
        self.assertEqual(status, 0, out)

    def test_fails_on_a_doubtful_one_and_names_the_line(self):
        status, out = self.check("\nrm $1\n")
        self.assertNotEqual(status, 0)
        self.assertIn("a file.sh line 3:", out)

    def test_says_that_it_is_skipped_without_the_tool(self):
        tools = self.tree / "bin"
        tools.mkdir()
        for tool in ("bash", "dirname"):
            (tools / tool).symlink_to(shutil.which(tool))
        status, out = self.run_script("check_shell.sh", PATH=str(tools))
        self.assertEqual(status, 77)
        self.assertIn("shell: skipped, shellcheck is not installed", out)


if __name__ == "__main__":
    if not shutil.which("shellcheck"):
        print("skipped: shellcheck is not installed")
        sys.exit(77)
    unittest.main()
