"""scripts/check_deps.py finds what it forbids, and nothing else."""

import unittest

from bad_tree import TreeTest

CMAKE = """trainer_module(base DEPS LIBS glog::glog)
# trainer_module(ghost DEPS)
trainer_module(config DEPS base)
trainer_module(tensor DEPS base)
trainer_module(layers
  DEPS config tensor base LIBS lib::x KERNELS)
"""


class DepsTest(TreeTest):
    def check(self, **files):
        self.write("CMakeLists.txt", files.pop("cmake", CMAKE))
        for name, text in files.items():
            self.write(name.replace("__", "/").replace("_dot_", "."), text)
        return self.run_script("check_deps.py", str(self.tree))

    def test_allows_declared_directions_own_headers_and_libraries(self):
        self.write("src/layers/local.h", "#pragma once\n")
        status, out = self.check(
            src__layers__relu_dot_cc='#include "trainer/tensor/shape.h"\n#include "local.h"\n'
                                     '#include "layers.pb.h"\n#include <vector>\n'
                                     '#include "trainer/layers/layer.h"\n',
            tests__layers__relu_test_dot_cc='#include "trainer/layers/layer.h"\n')
        self.assertEqual(status, 0, out)

    def test_fails_on_an_include_against_the_direction(self):
        status, out = self.check(src__tensor__shape_dot_cc='\n#include "trainer/layers/layer.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("src/tensor/shape.cc:2: tensor may not use 'layers' (allowed: tensor, base)",
                      out)

    def test_fails_on_a_public_header_against_the_direction(self):
        status, out = self.check(
            include__trainer__base__x_dot_h='#include "trainer/config/net_spec.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("include/trainer/base/x.h:1: base may not use 'config'", out)

    def test_fails_where_device_code_is_reached_outside_of_modules_for_it(self):
        self.write("include/trainer/backend/loops/map.h", "#pragma once\n")
        self.write("include/trainer/optim/update_rule.h", '#include "trainer/backend/loops/map.h"\n')
        self.write("src/optim/rules/sgd.cc", '#include "trainer/optim/update_rule.h"\n')
        cmake = ("trainer_module(backend DEPS)\ntrainer_module(optim DEPS backend KERNELS)\n"
                 "trainer_module(solver DEPS optim backend)\n")
        status, out = self.check(cmake=cmake)
        self.assertEqual(status, 0, out)
        status, out = self.check(cmake=cmake,
                                 src__solver__a_dot_cc='#include "trainer/optim/update_rule.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("src/solver/a.cc:1: includes device code, but its module is not marked "
                      "KERNELS: include/trainer/optim/update_rule.h -> include/trainer/backend/loops/map.h", out)

    def test_fails_on_an_unknown_module(self):
        status, out = self.check(src__base__x_dot_cc='#include "trainer/ghost/x.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("base names no module by 'ghost'", out)

    def test_fails_on_a_private_header_of_another_module(self):
        self.write("src/tensor/secret.h", "#pragma once\n")
        for target in ("secret.h", "../tensor/secret.h"):
            status, out = self.check(src__layers__relu_dot_cc=f'#include "{target}"\n')
            self.assertEqual(status, 1, target)
            self.assertIn(f"src/layers/relu.cc:1: '{target}' is a private header of module 'tensor'",
                          out)

    def test_fails_on_a_private_header_included_by_a_public_one(self):
        self.write("src/tensor/secret.h", "#pragma once\n")
        status, out = self.check(include__trainer__tensor__x_dot_h='#include "secret.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("a public header includes 'secret.h', a private one of its module", out)

    def test_fails_on_generated_code_outside_config_users(self):
        status, out = self.check(src__tensor__x_dot_cc='#include "net.pb.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("tensor may not use generated protobuf code", out)

    def test_fails_on_a_private_header_in_tools_and_on_tests(self):
        self.write("src/tensor/secret.h", "#pragma once\n")
        status, out = self.check(tools__main_dot_cc='#include "secret.h"\n#include "tests/x.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("tools/main.cc:1: 'secret.h' is a private header of module 'tensor'", out)
        self.assertIn("tools/main.cc:2: nothing includes tests/", out)

    def test_fails_on_a_cycle_and_on_an_unknown_dependency(self):
        status, out = self.check(cmake="trainer_module(a DEPS b)\ntrainer_module(b DEPS c)\n"
                                       "trainer_module(c DEPS a d)\n")
        self.assertEqual(status, 1)
        self.assertIn("CMakeLists.txt:1: cycle: a -> b -> c -> a", out)
        self.assertIn("CMakeLists.txt:3: module 'c' depends on unknown 'd'", out)

    def test_fails_on_a_folder_that_is_no_module(self):
        status, out = self.check(src__ghost__x_dot_cc="\n")
        self.assertEqual(status, 1)
        self.assertIn("src/ghost/x.cc:1: folder of no module", out)


if __name__ == "__main__":
    unittest.main()
