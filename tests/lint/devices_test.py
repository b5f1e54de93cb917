"""scripts/check_devices.py finds what knows its device above the backend, and nothing else."""

import unittest

from bad_tree import TreeTest

from check_devices import ALLOWED, check_devices


class DevicesTest(TreeTest):
    def messages(self, text, name="src/layers/a.cc"):
        return [message for _, message in check_devices(name, text)]

    def test_the_script_names_file_and_line_and_fails(self):
        self.write("src/layers/a.cc", "\nif (device.kind() == DeviceKind::kCpu) f();\n")
        status, out = self.run_script("check_devices.py", str(self.tree))
        self.assertEqual(status, 1)
        self.assertIn("src/layers/a.cc:2: asks which device it runs on", out)

    def test_looks_at_the_modules_above_the_backend_that_compute(self):
        text = "#pragma omp parallel\n"
        for folder in ("src/backend/cpu", "src/data", "include/trainer/backend", "tests/layers"):
            self.write(f"{folder}/a.cc", text)
        status, out = self.run_script("check_devices.py", str(self.tree))
        self.assertEqual(status, 0, out)
        names = ["src/optim/rules/a.h", "src/net/a.cc", "src/optim/a.cc", "src/solver/a.cc",
                 "include/trainer/optim/a.h", "include/trainer/layers/a.h"]
        for name in names:
            self.write(name, text)
        status, out = self.run_script("check_devices.py", str(self.tree))
        self.assertEqual(status, 1)
        for name in names:
            self.assertIn(f"{name}:1: splits a loop over the CPU's threads", out)

    def test_finds_verbs_that_make_a_device(self):
        text = "const auto device = MakeCpuDevice();  // omp_get_num_threads(), DeviceKind\n"
        self.write("src/run/device.cc", text)
        status, out = self.run_script("check_devices.py", str(self.tree))
        self.assertEqual(status, 0, out)
        self.write("tools/train.cc", text + "DeviceKind k;\n")
        status, out = self.run_script("check_devices.py", str(self.tree))
        self.assertEqual(status, 1)
        self.assertIn("tools/train.cc:1: makes a device by itself", out)
        self.assertNotIn("train.cc:2", out)

    def test_finds_questions_about_the_device(self):
        for line in ("x = run.device().kind();", "DeviceKind k;", "p->kind ( )"):
            self.assertEqual(len(self.messages(line)), 1, line)

    def test_finds_code_for_one_device(self):
        for line in ("#ifdef __CUDACC__", "#if TRAINER_CUDA", "Kernel<<<1, 2>>>(x);",
                     "#if defined(__CUDA_ARCH__)"):
            self.assertEqual(len(self.messages(line)), 1, line)

    def test_finds_threads_and_instructions_of_the_cpu(self):
        for line in ("ParallelRanges(n, 1, f);", "ParallelFor(n, f);", "#pragma omp simd",
                     "omp_get_num_threads()", "std::jthread t;", "_mm_sfence();", "__m128i x;",
                     "StreamCopy(a, b, n);", "parallel_for_internal::kGrain"):
            self.assertEqual(len(self.messages(line)), 1, line)

    def test_finds_headers_for_one_device(self):
        for header in ("<immintrin.h>", "<omp.h>", "<cuda_runtime.h>",
                       '"trainer/backend/loops/parallel_for.h"', '"trainer/backend/loops/nontemporal.h"'):
            self.assertEqual(len(self.messages(f"#include {header}")), 1, header)

    def test_allows_what_both_devices_run(self):
        text = """#include "trainer/backend/loops/map.h"
// On the CPU, ParallelFor with _mm_ and DeviceKind.
struct F { HD float operator()(float x) const { return x; } };
const char* const kText = "device.kind()";
Map(run.device(), F{}, y, x);  MapRows(device, n, m, f);  device.Copy(desc, a, b);
if (device.RunsLater() && device.PrefersBytes()) Wait();
"""
        self.assertEqual(self.messages(text), [])

    def test_an_exception_holds_for_its_file_and_its_words(self):
        name = "src/layers/shared/filler.cc"
        self.assertIn(name, ALLOWED)
        self.assertEqual(self.messages("ParallelRanges(n, 1, f);", name), [])
        self.assertEqual(len(self.messages("ParallelFor(n, f);", name)), 1)
        self.assertEqual(len(self.messages("ParallelRanges(n, 1, f);")), 1)


if __name__ == "__main__":
    unittest.main()
