"""Tests how scripts/gpu/machine_code.py reads and judges machine code.

    machine_code_test.py
"""

import contextlib
import io
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts/gpu"))
import machine_code  # noqa: E402
import machine_code_bounds  # noqa: E402
import sass  # noqa: E402


class MachineCodeTest(unittest.TestCase):
    SASS = """        Function : _Z3onev
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E R8, desc[UR4][R2.64] ;
        /*0030*/                   MUFU.RCP R9, R8 ;
        /*0040*/               @P1 STG.E desc[UR4][R2.64], R4 ;
        /*0050*/                   LDG.E R8, desc[UR4][R2.64] ;
        /*0060*/                   STL [R1], R4 ;
        /*0070*/                   NOP;
"""

    # An outer loop that divides inline, with an inner loop that calls a routine to divide.
    LOOPS = """        Function : _Z3twov
        /*0000*/                   MUFU.RCP R3, R2 ;
        /*0010*/                   BSSY B0, 0x70 ;
        /*0020*/                   LDG.E R4, [R2.64] ;
        /*0030*/                   CALL.REL.NOINC 0xb0 ;
        /*0040*/                   STG.E [R2.64], R4 ;
        /*0050*/               @P1 BRA 0x20 ;
        /*0060*/                   BSYNC B0 ;
        /*0070*/               @P0 CALL.REL.NOINC 0x90 ;
        /*0080*/                   BRA 0x0 ;
        /*0090*/                   EXIT ;
        /*00a0*/                   BRA 0xa0;
        /*00b0*/                   MUFU.RCP R5, R4 ;
        /*00c0*/                   RET.REL.NODEC R14 0x0 ;
"""

    @staticmethod
    def lines(*texts):
        return [sass.Instruction(16 * i, "", *text.split(" ", 1)) for i, text in enumerate(texts)]

    def test_counts_loads_divisions_registers_and_local_memory(self):
        found = machine_code.kernels_of(self.SASS, " Function _Z3onev:  REG:20 STACK:0")
        self.assertEqual(found,
                         {"_Z3onev": sass.Counts(7, 2, 1, 1, 20, 0, 2, {16: 1, 8: 0}, 0)})

    def test_fails_without_the_registers_of_a_kernel(self):
        for usage in ("", " Function _Z3twov:  REG:20", " Function _Z3onev:  STACK:0"):
            with self.assertRaisesRegex(SystemExit, "the registers of _Z3onev are unknown"):
                machine_code.kernels_of(self.SASS, usage)

    def test_counts_the_divisions_of_an_inner_loop(self):
        code = sass.functions(self.LOOPS)["_Z3twov"]
        loops = sass.innermost_loops(set(range(len(code))), sass.successors(code))
        self.assertEqual(sorted(loops), [[2, 3, 4, 5], [10]])
        self.assertEqual(sass.divisions(code), {0, 3, 11})
        self.assertEqual(sass.count(code),
                         sass.Counts(13, 1, 3, 0, None, 1, 1, {16: 0, 8: 0}, 0))

    def test_counts_loads_that_overlap(self):
        self.assertEqual(sass.overlap(self.lines(
            "LDG.E.128 R4, [R2.64]", "LDG.E R8, [R2.64+0x20]", "FADD R9, R7, R6",
            "LDG.E R10, [R2.64+0x30]", "FADD R9, R8, R10")), 2)
        self.assertEqual(sass.overlap(self.lines(
            "LDG.E R4, [R2.64]", "STG.E [R10.64], R4", "LDG.E R4, [R2.64+0x4]",
            "STG.E [R10.64+0x4], R4")), 1)

    # A loop over groups of four neighbours, and one over the last elements with more loads.
    TAIL = """        Function : _Z5threev
        /*0000*/                   LDG.E.128 R4, [R2.64] ;
        /*0010*/                   LDG.E.64 R8, [R2.64] ;
        /*0020*/                   F2FP.BF16.F32.PACK_AB R9, R4, R5 ;
        /*0030*/                   F2FP.BF16.F32.PACK_AB R10, RZ, R8 ;
        /*0040*/                   STG.E.128 [R2.64], R4 ;
        /*0050*/               @P1 BRA 0x0 ;
        /*0060*/                   LDG.E R4, [R2.64] ;
        /*0070*/                   LDG.E R5, [R2.64] ;
        /*0080*/                   LDG.E R6, [R2.64] ;
        /*0090*/                   STG.E [R2.64], R4 ;
        /*00a0*/               @P0 BRA 0x60 ;
        /*00b0*/                   EXIT ;
"""

    def test_judges_the_main_loop_and_not_the_last_elements(self):
        counts = sass.count(sass.functions(self.TAIL)["_Z5threev"])
        self.assertEqual((counts.overlap, counts.wide, counts.packed), (2, {16: 2, 8: 1}, 1))

    def test_judges_an_outer_loop_if_only_that_reads_neighbours_together(self):
        code = sass.functions("""        Function : _Z4fourv
        /*0000*/                   LDG.E.128 R4, [R2.64] ;
        /*0010*/                   LDG.E R8, [R2.64] ;
        /*0020*/                   STG.E [R2.64], R8 ;
        /*0030*/               @P1 BRA 0x10 ;
        /*0040*/                   STG.E.128 [R2.64], R4 ;
        /*0050*/               @P0 BRA 0x0 ;
        /*0060*/                   EXIT ;
""")["_Z4fourv"]
        self.assertEqual(sass.count(code).wide, {16: 2, 8: 0})

    def test_names_the_bounds_that_are_broken(self):
        counts = sass.Counts(7, 2, 1, 1, 20, 1, 2, {16: 4, 8: 0}, 3)
        bound = machine_code_bounds.Bound
        self.assertEqual(
            machine_code.broken(bound("one", 2, 1, 7, 20, 1, 1, 2, {16: 4}, 3), counts), [])
        self.assertEqual(
            machine_code.broken(bound("one", 3, 0, 6, 19, 0, 0, 3, {16: 5, 8: 1}, 4), counts),
            ["2 loads before the first store, not at least 3", "1 divisions, not at most 0",
             "7 instructions, not at most 6", "20 registers, not at most 19",
             "1 accesses to local memory, not at most 0",
             "1 divisions in an inner loop, not at most 0",
             "2 loads that overlap, not at least 3",
             "4 accesses of 16 bytes in the main loop, not at least 5",
             "0 accesses of 8 bytes in the main loop, not at least 1",
             "3 roundings of two numbers in the main loop, not at least 4"])

    def test_finds_the_kernels_of_a_bound(self):
        bound = machine_code_bounds.Bound("Sums<4, ..Product<..16")
        self.assertTrue(bound.names("void Sums<4, a::Product<BFloat16, 3> >(int)"))
        self.assertFalse(bound.names("void Product<Float16> Sums<4, Row>"))
        self.assertFalse(bound.names("void Sums<4, Row<Product<Float16> > >"))
        self.assertFalse(bound.names("void Sums<4, Product<float> >"))

    def test_reports_local_memory_of_kernels_without_a_bound(self):
        bound = machine_code_bounds.Bound
        kernels = {"one": sass.Counts(local=3, registers=9), "two": sass.Counts(registers=9)}
        self.assertEqual(
            machine_code.faults_of(kernels, (bound("two"),)),
            ["one: 3 accesses to local memory, and no bound allows them"])
        self.assertEqual(machine_code.faults_of(kernels, (bound("one", most_local=3),)), [])
        self.assertEqual(
            machine_code.faults_of(kernels, (bound("one"), bound("three"))),
            ["one: 3 accesses to local memory, not at most 0", "there is no kernel three"])

    @contextlib.contextmanager
    def tools_in(self, **folders):
        """Makes these programs the only ones on PATH, beside nvcc and in pip's packages."""
        with tempfile.TemporaryDirectory() as root, \
                mock.patch.dict(os.environ, {"PATH": f"{root}/path"}), \
                mock.patch.object(sys, "path", [f"{root}/site"]):
            for name, folder in folders.items():
                file = pathlib.Path(root, folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(0o755)
            os.symlink(f"{root}/toolkit/nvcc", f"{root}/path/nvcc")
            yield

    def test_finds_tools_beside_nvcc_and_in_packages(self):
        with self.tools_in(nvcc="toolkit", nvdisasm="path", cuobjdump="toolkit"):
            self.assertIsNone(shutil.which("cuobjdump"))
            machine_code.add_tools_to_path()
            machine_code.exit_without_tools()
        with self.tools_in(nvcc="toolkit", nvdisasm="path", cuobjdump="site/nvidia/cu13/bin"):
            machine_code.add_tools_to_path()
            machine_code.exit_without_tools()

    def test_names_the_packages_of_missing_tools(self):
        with self.tools_in(nvcc="toolkit", nvdisasm="path"), \
                contextlib.redirect_stdout(io.StringIO()) as out, \
                self.assertRaisesRegex(SystemExit, "77"):
            machine_code.add_tools_to_path()
            machine_code.exit_without_tools()
        self.assertIn("there is no cuobjdump; install cuda-cuobjdump of", out.getvalue())
        self.assertIn("nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm", out.getvalue())


if __name__ == "__main__":
    unittest.main()
