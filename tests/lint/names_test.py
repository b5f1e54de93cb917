"""scripts/check_names.py finds file-local names that two files of a module define."""

import unittest

from bad_tree import TreeTest


class NamesTest(TreeTest):
    def check(self, first, second, folder="src/b/"):
        self.write("src/a/one.cc", f"namespace {{\n{first}\n}}  // namespace\n")
        self.write("src/a/deep/two.cc" if folder == "src/a/" else folder + "two.cc",
                   f"namespace {{\n{second}\n}}\n")
        return self.run_script("check_names.py", str(self.tree))

    def test_finds_functions_types_and_values(self):
        for text, name in (("int Twice(int x) { return 2 * x; }", "Twice"),
                           ("template <class T>\nT* Find(const T& x) { if (x) { f(); } }", "Find"),
                           ("struct Cell final : Base { int a; };", "Cell"),
                           ("using Table = int[3];", "Table"),
                           ("constexpr std::chrono::seconds kWait{3};", "kWait"),
                           ("constexpr char kNames[][4] = {\"ab\", \"c;}\"};", "kNames"),
                           ("const Register<Verb> kVerb(\"a\", {1, 2});", "kVerb")):
            status, out = self.check("int Other() { return 1; }\n" + text, text, "src/a/")
            self.assertEqual(status, 1, text)
            self.assertIn(f"src/a/one.cc:1: '{name}' is file-local here and in src/a/deep/two.cc", out)
            self.assertIn("1 names twice", out)

    def test_other_modules_may_have_the_same_names(self):
        status, out = self.check("int kSame = 1;", "int kSame = 1;", "src/b/")
        self.assertEqual(status, 0, out)

    def test_finds_names_of_types_in_headers_of_the_module(self):
        self.write("src/a/cell.h", "namespace trainer {\nstruct Cell {\n  int a;\n};\n}\n")
        status, out = self.check("int Cell() { return 1; }", "int Cell() { return 1; }", "src/b/")
        self.assertEqual(status, 1)
        self.assertIn("src/a/one.cc:1: 'Cell' is file-local here and a type of src/a/cell.h", out)
        self.assertIn("1 names twice", out)

    def test_names_in_bodies_and_outside_do_not_count(self):
        status, out = self.check("void F() { int x = 1; }", "void G() { int x = 1; }\n}\nint F() {",
                                 "src/a/")
        self.assertEqual(status, 0, out)


if __name__ == "__main__":
    unittest.main()
