"""build of scripts/common.sh, with a project that has no code."""

import json
import os
import unittest

from bad_tree import ROOT, TreeTest

# The flags of the project, and a made-up nvcc, or none, so that no CUDA is needed.
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(p LANGUAGES NONE)
set(TRAINER_CUDA AUTO CACHE STRING "")
set(CMAKE_CUDA_COMPILER /made/up/nvcc CACHE STRING "")
message(STATUS "a line of CMake")
message(NOTICE "a note about something else")
include({ROOT}/scripts/cmake/TrainerFlags.cmake)
add_custom_target(nothing ALL)
"""


class BuildTest(TreeTest):
    def build(self, *flags, **environment):
        self.write("CMakeLists.txt", PROJECT)
        self.write("CMakePresets.json", json.dumps({
            "version": 6,
            "configurePresets": [{"name": "p", "generator": "Ninja",
                                  "binaryDir": "${sourceDir}/build/p",
                                  "cacheVariables": dict(flag.split("=") for flag in flags)}],
            "buildPresets": [{"name": "p", "configurePreset": "p"}]}))
        self.write("scripts/common.sh", (ROOT / "scripts/common.sh").read_text())
        script = self.write("scripts/build.sh",
                            'set -euo pipefail\nsource "${BASH_SOURCE%/*}/common.sh"\nbuild\n')
        status, out = self.run_script(str(script), TRAINER_PRESET="p", TRAINER_JOBS="1",
                                      TRAINER_TARGETS="", **environment)
        self.assertEqual(status, 0, out)
        return out.splitlines()

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a GPU")
    def test_says_in_one_line_that_code_for_gpus_is_left_out(self):
        lines = self.build()
        self.assertEqual(lines[:2], [
            "build: configuring (p)",
            "build: no code for GPUs, because this machine has none; to include it for other "
            "machines, configure with -DTRAINER_CUDA=ON"])
        for line in lines[2:]:
            self.assertRegex(line, r"^build: (\d+ of \d+ steps|up to date)")

    def test_says_in_one_line_that_the_gpu_of_this_machine_needs_nvcc(self):
        programs = self.write("bin/nvidia-smi", "").parent
        (programs / "nvidia-smi").chmod(0o755)
        # A name in CUDACXX keeps CMake from finding an nvcc of this machine.
        without_nvcc = {"CUDACXX": "/no/nvcc", "PATH": f"{programs}:{os.environ['PATH']}"}
        self.assertEqual(self.build("CMAKE_CUDA_COMPILER=", **without_nvcc)[:2], [
            "build: configuring (p)",
            "build: no code for this machine's GPU, because nvcc was not found; install the CUDA "
            "toolkit or name its nvcc with -DCMAKE_CUDA_COMPILER=NVCC, and configure with "
            "-DTRAINER_CUDA=ON"])

    def test_is_quiet_about_what_was_asked(self):
        lines = self.build("TRAINER_CUDA=OFF")
        self.assertEqual(lines[0], "build: configuring (p)")
        for line in lines[1:]:
            self.assertRegex(line, r"^build: (\d+ of \d+ steps|up to date)")


if __name__ == "__main__":
    unittest.main()
