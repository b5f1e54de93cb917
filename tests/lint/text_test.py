"""scripts/check_text.py finds what it forbids, and nothing else."""

import unittest

from bad_tree import TreeTest

from check_text import check_text


class TextTest(TreeTest):
    def messages(self, name, text):
        return [message for _, message in check_text(name, text)]

    def test_the_script_names_file_and_line_and_fails(self):
        self.write("src/a.cc", "int a;\nint b; \n")
        status, out = self.run_script("check_text.py", str(self.tree))
        self.assertEqual(status, 1)
        self.assertIn("src/a.cc:2: trailing blanks", out)

    def test_the_script_passes_on_a_clean_tree(self):
        self.write("src/a.cc", "int a;\n")
        status, out = self.run_script("check_text.py", str(self.tree))
        self.assertEqual(status, 0, out)

    def test_a_page_shows_files_as_they_are(self):
        self.write("src/a.cc", "int a;\n")
        self.write("page.md", "# a\n\n```cpp src/a.cc\nint a;\n```\n")
        self.assertEqual(self.run_script("check_text.py", str(self.tree))[0], 0)
        self.write("src/a.cc", "int b;\n")
        status, out = self.run_script("check_text.py", str(self.tree))
        self.assertEqual(status, 1)
        self.assertIn("page.md:3: differs from src/a.cc", out)

    def test_finds_notes_of_unfinished_work(self):
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            self.assertEqual(self.messages("README.md", f"a {word}: b\n"),
                             ["a note of unfinished work"])
        self.assertEqual(self.messages("README.md", "todos, mastodon\n"), [])

    def test_finds_paths_of_somebodys_folder(self):
        for folder in ("ho" + "me", "wo" + "rk", "ro" + "ot"):
            self.assertEqual(self.messages("a.sh", f"cd /{folder}/me\n"),
                             ["the path of somebody's folder"])
        self.assertEqual(self.messages("a.sh", "cd src/work/x; $root/tmp; /tmp/run\n"), [])

    def test_finds_blanks_tabs_returns_and_missing_newlines(self):
        self.assertEqual(self.messages("a.md", "a \n"), ["trailing blanks"])
        self.assertEqual(self.messages("a.cc", "\tint a;\n"), ["a tab"])
        self.assertEqual(self.messages("Makefile", "a:\n\tb\n"), [])
        self.assertEqual(self.messages("a.md", "a\r\n"), ["a carriage return"])
        self.assertEqual(self.messages("a.md", "a"), ["no newline at the end"])

    def test_finds_calls_that_end_the_process_in_the_product_only(self):
        for call in ("assert(x)", "std::abort()", "exit(1)", "CHECK(x)", "CHECK_EQ(a, b)",
                     "LOG(FATAL) << x", "DCHECK(x)"):
            found = self.messages("src/a.cc", f"  {call};\n")
            self.assertEqual(found, ["ends the process: throw trainer::Error"], call)
            self.assertEqual(self.messages("tests/a.cc", f"  {call};\n"), [])
        for call in ("static_assert(x)", "// exit(1)", '"assert(x)"', "CheckDnnl(x)", "_exit(1)", "AtExit(1)"):
            self.assertEqual(self.messages("src/a.cc", f"  {call};\n"), [], call)

    def test_finds_shared_ownership_and_using_namespace_in_headers(self):
        self.assertEqual(self.messages("src/a.h", "std::shared_ptr<A> a;\n"),
                         ["shared ownership: one owner and references"])
        self.assertEqual(self.messages("tests/a.h", "using namespace std;\n"),
                         ["using namespace in a header"])


if __name__ == "__main__":
    unittest.main()
