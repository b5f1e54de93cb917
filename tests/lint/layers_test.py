"""scripts/check_layers.py finds layer types that need more than one source file."""

import unittest

from bad_tree import TreeTest

LAYER = 'const RegisterLayer<Cell> kCell(\n    "Cell", {.text = "a cell"});\n'


class LayersTest(TreeTest):
    def check(self, engine="int Run();\n", second=""):
        self.write("src/layers/shape/cell.cc", LAYER)
        self.write("src/layers/shape/other.cc", second)
        self.write("src/net/execute/run.cc", engine)
        return self.run_script("check_layers.py", str(self.tree))

    def test_a_type_in_one_file_is_good(self):
        code, out = self.check()
        self.assertEqual((code, out.strip()), (0, "layers: 1 types, 0 faults"))

    def test_a_type_that_the_engine_names(self):
        code, out = self.check(engine='\nbool IsCell(T t) { return t.type() == "Cell"; }\n')
        self.assertEqual(code, 1)
        self.assertIn("src/net/execute/run.cc:2: names the layer type Cell", out)

    def test_a_type_that_is_registered_twice(self):
        code, out = self.check(second=LAYER)
        self.assertEqual(code, 1)
        self.assertIn("other.cc: layer type Cell is also registered in src/layers/shape/cell.cc", out)


if __name__ == "__main__":
    unittest.main()
