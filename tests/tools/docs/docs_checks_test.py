"""Tests docs_test.py and scripts/docs, and that their checks can fail."""

import pathlib
import re
import sys
import tempfile
import unittest

import docs_test
import troubleshooting_test

sys.path.insert(0, str(docs_test.ROOT / "scripts/docs"))
import commands  # noqa: E402
import terminal  # noqa: E402

sys.path.insert(0, str(docs_test.ROOT / "scripts"))
import make_reference  # noqa: E402


def run_page(text, write=False):
    """Runs a page and returns (failures, text)."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "page.md"
        path.write_text(text)
        (pathlib.Path(name) / "run").mkdir()
        page = docs_test.Page(path, "/bin/true", pathlib.Path(name) / "run", write)
        page.fail = lambda what, at: page.failures.append(what)
        failures = page.run()
        if write:
            page.write_outputs()
        return failures, path.read_text()


PAGE = "```sh\necho loss = 0.5; echo done\n```\n```text\n{}```\n"


class Pages(unittest.TestCase):
    def test_numbers_may_differ_and_words_may_not(self):
        self.assertEqual(run_page(PAGE.format("loss = 1e-3\n...\n"))[0], [])
        self.assertEqual(run_page(PAGE.format("cost = 0.5\n"))[0], ["not in the output: cost = 0.5"])

    def test_a_command_fails(self):
        self.assertIn("ended with 3", run_page("```sh\nexit 3\n```\n")[0][0])

    def test_outputs_are_written(self):
        self.assertEqual(run_page(PAGE.format(""), write=True)[1], PAGE.format("loss = 0.5\ndone\n"))
        self.assertEqual(run_page(PAGE.format("loss = 7\n...\n"), write=True)[1],
                         PAGE.format("loss = 0.5\n...\n"))

    def test_the_number_that_is_most_alike_is_taken(self):
        output = "Iteration 100, loss = 2\nIteration 200, loss = 1\n"
        self.assertEqual(docs_test.refreshed("Iteration 200, loss = 5\n", output),
                         "Iteration 200, loss = 1\n")

    def test_a_line_with_other_words_is_replaced(self):
        self.assertEqual(docs_test.refreshed("the loss fell to 5\n", "x\nThe loss falls to 7\n"),
                         "The loss falls to 7\n")
        self.assertEqual(docs_test.refreshed("gone\n", "something else\n"), "gone\n")


    def test_blocks_that_need_a_module_run_where_it_is(self):
        page = "```sh\necho a\n```\n\n```sh needs={}\nexit 3\n```\n\n```text\nb\n```\n"
        self.assertEqual(run_page(page.format("no_such_module"))[0], [])
        failures = run_page(page.format("json"))[0]
        self.assertIn("ended with 3", failures[0])
        self.assertEqual(failures[1], "not in the output: b")

    def test_python_is_saved_under_its_name(self):
        page = "```python\n# hello.py\nprint(40 + 2)\n```\n```sh\npython3 hello.py\n```\n```text\n42 {}\n```\n"
        self.assertEqual(run_page(page.format("x"))[0], ["not in the output: 42 x"])


class Troubleshooting(unittest.TestCase):
    def test_a_message_may_change_a_word_and_not_most(self):
        known = [troubleshooting_test.groups("the file is not there; looked for it everywhere")]
        page = "error: <x>: the file is not there; looked for {}\n"
        self.assertEqual(troubleshooting_test.unknown_quotes(page.format("it here"), known), (1, []))
        failures = troubleshooting_test.unknown_quotes("error: <x>: the disk is full now\n", known)[1]
        self.assertIn("docs/troubleshooting.md:1: the program has no message like this", failures[0])


class Reference(unittest.TestCase):
    def test_text_keeps_its_characters_and_fields_are_code(self):
        make_reference.FIELDS.add("base_lr")
        self.assertEqual(make_reference.prose("base_lr * x_i, `a*b`"), "`base_lr` \\* x\\_i, `a*b`")

    def test_every_type_belongs_to_a_group(self):
        with self.assertRaisesRegex(SystemExit, "Novel"):
            make_reference.layers_page({"layers": [{"type": "Novel"}], "messages": {}})


class Links(unittest.TestCase):
    def test_missing_files_and_headings(self):
        with tempfile.TemporaryDirectory() as name:
            root, docs_test.ROOT = docs_test.ROOT, pathlib.Path(name).resolve()
            try:
                (docs_test.ROOT / "src").mkdir()
                (docs_test.ROOT / "src/README.md").write_text("# A b, c\n## A `b` c\n")
                (docs_test.ROOT / "docs").mkdir()
                (docs_test.ROOT / "docs/alone.md").write_text("# Alone\n")
                (docs_test.ROOT / "page.md").write_text(
                    "[1](src/README.md#a-b-c) [2](src/README.md#a-b-c-1) [3](https://x.org/y)\n"
                    "[4](none.md) [5](src/README.md#d) `[6](no)`\n")
                failures = docs_test.check_links()
            finally:
                docs_test.ROOT = root
        self.assertEqual(failures, ["page.md: there is no none.md",
                                    "page.md: src/README.md has no heading #d",
                                    "docs/alone.md: no link leads there",
                                    "too few links were found"])


class Versions(unittest.TestCase):
    def test_the_pages_name_the_version_of_the_build(self):
        text = {name: (docs_test.ROOT / name).read_text() for name in
                ("CMakeLists.txt", "README.md", "CHANGELOG.md", "CITATION.cff")}
        version = re.search(r"^project\(.*?VERSION ([\d.]+)", text["CMakeLists.txt"], re.M | re.S)
        for name, line in (("README.md", "# trainer {}\n"), ("CHANGELOG.md", "\n## {}\n"),
                           ("CITATION.cff", "\nversion: {}\n")):
            self.assertIn(line.format(version.group(1)), text[name])


class Commands(unittest.TestCase):
    HELP = {(): "examples:\n  x y\n\nlook at nets:\n  draw   draw a net\n  show   show it\n\nend\n",
            ("draw",): "trainer draw: draw a net\n\nusage: trainer draw A\n  B\n\nexamples:\n  trainer draw x\n",
            ("show",): "trainer show: show it\n\nusage: trainer show\n\nexamples:\n  trainer show y\n"}

    def test_examples_stay_and_new_verbs_are_added(self):
        real = commands.help_of
        commands.help_of = lambda _, *verb: self.HELP[verb]
        try:
            made = commands.make(None, "# Commands\n\n### trainer draw\n\nOld.\n\n```sh\nmine\n```\n")
        finally:
            commands.help_of = real
        self.assertEqual(made, "# Commands\n\n## Look at nets\n\n### trainer draw\n\nDraw a net.\n\n"
                               "    trainer draw A\n    B\n\n```sh\nmine\n```\n\n### trainer show\n\n"
                               "Show it.\n\n    trainer show\n\n```sh\ntrainer show y\n```\n```text\n"
                               "```\n")


class Terminal(unittest.TestCase):
    def test_a_line_that_is_drawn_again(self):
        screen = terminal.Screen()
        screen.write("10 %, a long line\r\x1b[J20 %\r\n\x1b[32mgreen\x1b[0m\r\n")
        self.assertEqual([terminal.spans(row) for row in screen.rows()],
                         [[["20 %", None]], [["green", terminal.COLOURS["32"]]]])
        self.assertIn(">20 %</text>", terminal.draw(list(screen.rows()), "a < b"))

    def test_a_process_that_is_killed(self):
        self.assertEqual(terminal.run_in_terminal("echo 1; kill -KILL $$", ".", {}),
                         "1\r\n\r\nKilled\r\n")


if __name__ == "__main__":
    unittest.main()
