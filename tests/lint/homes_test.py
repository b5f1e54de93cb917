"""scripts/check_homes.py finds definitions outside the sources named like their header."""

import unittest

from bad_tree import TreeTest


class HomesTest(TreeTest):
    def check(self, source):
        self.write("include/trainer/a/cell.h",
                   "namespace trainer {\nclass Cell {\n public:\n  void Grow();\n};\n"
                   "int CountCells(int all);\n}\n")
        self.write(source, "namespace trainer {\nnamespace {\nint Local(int a) { return a; }\n}\n"
                           "void Cell::Grow() {}\nint CountCells(int all) { return all; }\n}\n")
        return self.run_script("check_homes.py", str(self.tree))

    def test_a_source_of_the_headers_name_is_a_home(self):
        for name in ("cell", "cell_growth"):
            code, out = self.check(f"src/a/{name}.cc")
            self.assertEqual(code, 0, out)

    def test_another_source_is_none(self):
        code, out = self.check("src/a/growth.cc")
        self.assertEqual(code, 1)
        self.assertIn("src/a/growth.cc:1: Cell::Grow is declared in include/trainer/a/cell.h", out)

    def test_functions_of_a_name_that_another_module_declares_do_not_count(self):
        code, out = self.check("src/b/growth.cc")
        self.assertEqual(code, 0, out)


if __name__ == "__main__":
    unittest.main()
