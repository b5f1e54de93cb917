#!/usr/bin/env python3
"""Checks instruction counts of kernels that should be memory-bound in nvcc's machine code. Fails if
a count is out of its bound, or if nvcc warns.

    scripts/gpu/machine_code.py --proto=build/ci/proto [--arch=80,90a] [--all] [FILE...]

Compiles the device code of the files of BOUNDS, or of FILE, for the named architectures. --all
prints the counts of every kernel. Needs nvcc and cuobjdump of the CUDA toolkit, but no GPU; without
them exits with code 77.
"""

import argparse
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sass

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
FLAGS = ["-DTRAINER_CUDA=1", "-DGFLAGS_IS_A_DLL=0", "-DGLOG_CUSTOM_PREFIX_SUPPORT", "-O3",
         "-DNDEBUG", "--extended-lambda", "--expt-relaxed-constexpr", "-std=c++20", "-x", "cu",
         "-cubin",
         "-Xcompiler=-fno-math-errno,-fno-trapping-math"]
USAGE = re.compile(r"Function (\S+):\s+REG:(\d+)")


@dataclasses.dataclass(frozen=True)
class Bound:
    """Bounds for the kernels of a file whose readable name contains `kernel`."""
    kernel: str
    least_loads: int = 0     # loads from global memory before the first store
    most_divisions: int = 0  # reciprocals, and calls of routines that compute one
    most_instructions: int = 1000
    most_registers: int = 64
    most_local: int = 0      # accesses to local memory
    most_inner_divisions: int = 0
    least_overlap: int = 0   # loads in flight at once


BOUNDS = {
    "src/backend/cuda/kernels/attention.cc": (
        # Divides only to find a block's tile and, at the end, a row by its sum. A thread keeps 16
        # scores and up to 64 sums in registers, so few blocks fit a multiprocessor.
        Bound("AttentionForwardKernel<64>", 12, 17, 1900, 80),
        Bound("AttentionForwardKernel<128>", 16, 17, 2020, 128),
        Bound("AttentionKeyGradientKernel<64>", 32, 4, 2190, 128),
        Bound("AttentionKeyGradientKernel<128>", 40, 4, 2650, 180),
        Bound("AttentionQueryGradientKernel", 28, 4, 2070, 128),
        Bound("RowsKernel<trainer::cuda::HeadDots", 32, 5, 500)),
    "src/backend/cuda/kernels/batch_norm.cc": (
        # Divides only to find a chunk's position and, at the end, the channel's sums.
        Bound("JoinChunksKernel<trainer::MomentsFromOrigin<float>", 12, 16, 1200,
              most_inner_divisions=8),
        Bound("MapPixelsKernel<4, float, trainer::InputGradient<trainer::MaskedByInput", 20, 2, 450,
              96),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::MaskedByInput<float", 20, 12, 950,
              96, most_inner_divisions=1)),
    "src/backend/cuda/kernels/lrn.cc": (
        # Divides once, the number of tiles. In the forward pass a thread reads two groups of four
        # channels, 16 bytes each; in the backward pass two groups each from x and from dy.
        Bound("LrnForwardGroupsKernel<float, trainer::UsualPower", 2, 3, 520, least_overlap=2),
        Bound("LrnBackwardGroupsKernel<float, trainer::UsualPower", 4, 3, 710, least_overlap=4),
        Bound("LrnForwardKernel<float, trainer::UsualPower>", 16, 3, 620, least_overlap=4),
        Bound("LrnBackwardKernel<float, trainer::UsualPower>", 32, 3, 1110, least_overlap=4),
        Bound("LrnForwardKernel", 16, 6), Bound("LrnBackwardKernel", 32, 23, 1780)),
    "src/backend/cuda/kernels/pool.cc": (
        # Divides once, a row of pixels by the height. The gradient of 2 x 2 windows reads one dy
        # and one tap for each element.
        Bound("FixedMaxAndTap<float, 4, 2, 2>", 4, 3, 370, least_overlap=4),
        Bound("FixedMaxAndTap<float, 2, 3, 2>", 9, 3, 450, least_overlap=4),
        Bound("FixedMaxGradient<float, 4, 2, 2>", 2, 3, 265, least_overlap=2),
        Bound("FixedMaxGradient<float, 4, 3, 2>", 8, 3, 365, least_overlap=4),
        Bound("FixedMaxAndTap", 4, 3, 600, least_overlap=4),
        Bound("FixedMaxGradient", 2, 3, 600, least_overlap=2)),
    "src/backend/cuda/kernels/softmax.cc": (
        # Divides a row by its sum, and to find a thread's row.
        Bound("RowsKernel<trainer::SoftmaxRow<", 32, 9, 800, least_overlap=4),
        Bound("RowsKernel<trainer::SoftmaxGradientRow<", 64, 3, 710, least_overlap=8),
        Bound("RowOfThread<trainer::Softmax", 32, 9, 1070, least_overlap=2)),
    "src/backend/cuda/ops_copy.cc": (
        Bound("ConvertFour<float, trainer::BFloat16>", 1, 0, 150),
        Bound("ConvertFour<trainer::BFloat16, float>", 1, 0, 150)),
    "src/backend/cuda/ops_sums.cc": (
        # Divides only to find the position of a block's chunk, here and below.
        Bound("LongSumsKernel<trainer::cuda::ProductTerms<float>", 8, 5, 1200),),
    "src/layers/activation/dropout.cc": (
        # A thread draws while it reads its four neighbours.
        Bound("Blocks<1, ", 2, 0, 215, 40, least_overlap=2),),
    "src/layers/activation/prelu.cc": (
        Bound("NeighbourSumsKernel<trainer::SlopeTerm<float>", 8, 4, 800),
        Bound("LongSumsKernel<trainer::SlopeTerm<float>", 8, 6, 700),
        # A thread divides once to find its first channel, here and in broadcast.cc.
        Bound("FourChannelsKernel<1, trainer::PReluForward, float", 4, 1, 130),
        Bound("FourChannelsKernel<1, trainer::PReluBackward, float", 6, 1, 140)),
    "src/layers/activation/relu.cc": (
        # In f32 a thread divides once to unroll the loop over unaligned elements. In 16 bits one
        # instruction rounds two numbers.
        Bound("MapIndexedKernel<trainer::map_internal::WithoutIndex<trainer::Rectify>, float", 2, 3,
              360, least_overlap=4),
        Bound("WithoutIndex<trainer::Rectify>, trainer::", 2, 0, 165, least_overlap=4),
        Bound("WithoutIndex<trainer::ReluForward>, trainer::", 2, 0, 205, least_overlap=4),
        Bound("WithoutIndex<trainer::ReluBackward>, trainer::", 4, 0, 470, least_overlap=8),
        Bound("WithoutIndex<trainer::ReluBackward>, float", 4, 3, 830, least_overlap=8)),
    "src/layers/conv/embed.cc": (
        # Divides only for images, and once in a block to find its row.
        Bound("IndexAddKernel<trainer::VectorGradients", 8, 52, 2150,
              most_inner_divisions=16),),
    "src/layers/detection/ps_roi_pooling.cc": (
        # Divides for a cell's bounds and its mean, and once for a pixel's position in all cells.
        Bound("RowsKernel<trainer::AddToPixels", 8, 40, 1120, most_inner_divisions=8),),
    "src/layers/detection/roi_pooling.cc": (
        Bound("RowsKernel<trainer::AddToWinners", 8, 18, 880),),
    "src/layers/shared/broadcast.cc": (
        # Also divides to find a small element's position, once for all its repetitions.
        Bound("LongSumsKernel<trainer::RepetitionTerms<float, std::integral_constant<bool, true>",
              8, 40, 1400, most_inner_divisions=16),
        Bound("ScaleShiftAll>, float", 2, 0, 450),
        Bound("FourChannelsKernel<1, trainer::TimesFirst, float", 4, 1, 115),
        Bound("FourChannelsKernel<2, trainer::TimesFirstPlusSecond, float", 6, 1, 125)),
    "src/layers/norm/group_norm.cc": (
        # Divides only for tensors whose channels are not adjacent, here and in mvn.cc.
        Bound("PartSumsKernel<trainer::Along<float>", 16, 11, 680, most_inner_divisions=8),
        Bound("MapPixelsKernel<float, trainer::Apply<float>", 16, 17, 1000,
              most_inner_divisions=14),
        Bound("MapPixelsKernel<float, trainer::InputGradient<float>", 20, 17, 1160, 96,
              most_inner_divisions=14)),
    "src/layers/norm/layer_norm.cc": (
        # Divides a row by its length and its deviation, and to find a warp's row.
        Bound("RowsKernel<trainer::LayerNormStandardize<", 32, 11, 1430, least_overlap=8),
        Bound("RowsKernel<trainer::LayerNormInputGradient<", 32, 9, 1950, least_overlap=2),
        # Divides only to find the position of a block's chunk.
        Bound("NeighbourSumsKernel<trainer::LayerNormParamTerms<float>", 8, 3, 750),
        Bound("LongSumsKernel<trainer::LayerNormParamTerms<float>", 8, 5, 800)),
    "src/layers/norm/mvn.cc": (
        Bound("PartSumsKernel<trainer::ProductOf<float>", 8, 11, 650, most_inner_divisions=8),
        Bound("MapPixelsKernel<float, trainer::StandardizeGradient<float>", 12, 11, 720,
              most_inner_divisions=8)),
    "src/optim/lbfgs.cc": (
        Bound("UpdateKernel<trainer::AddScaled", 8, 0, 100),
        Bound("UpdateKernel<trainer::Subtract", 8, 0, 110)),
    "src/optim/rules/adam.cc": (
        # See sgd.cc; the rule itself also divides.
        Bound("MultiTensorApplyKernel", 8, 39, 1620, 80, most_inner_divisions=8),),
    "src/optim/rules/sgd.cc": (
        # Divides to find an element's position in a copy of the weight in another order.
        Bound("MultiTensorApplyKernel", 8, 25, 1390, 80, most_inner_divisions=4),),
    "src/optim/tree_accumulator.cc": (
        Bound("UpdateKernel<trainer::AddBefore", 8, 0, 95),),
}


def kernels_of(text, usage):
    """Returns {mangled name: Counts} from the output of cuobjdump -sass and -res-usage."""
    found = {name: sass.count(code) for name, code in sass.functions(text).items()}
    for name, registers in USAGE.findall(usage):
        if name in found:
            found[name].registers = int(registers)
    return found


def broken(bound, counts):
    """Returns a text for each part of a bound that does not hold."""
    limits = (("loads before the first store", counts.loads >= bound.least_loads,
               f"at least {bound.least_loads}", counts.loads),
              ("divisions", counts.divisions <= bound.most_divisions,
               f"at most {bound.most_divisions}", counts.divisions),
              ("instructions", counts.instructions <= bound.most_instructions,
               f"at most {bound.most_instructions}", counts.instructions),
              ("registers", counts.registers <= bound.most_registers,
               f"at most {bound.most_registers}", counts.registers),
              ("accesses to local memory", counts.local <= bound.most_local,
               f"at most {bound.most_local}", counts.local),
              ("divisions in an inner loop",
               counts.inner_divisions <= bound.most_inner_divisions,
               f"at most {bound.most_inner_divisions}", counts.inner_divisions),
              ("loads that overlap", counts.overlap >= bound.least_overlap,
               f"at least {bound.least_overlap}", counts.overlap))
    return [f"{value} {what}, not {limit}" for what, holds, limit, value in limits if not holds]


def readable(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True)
    return [name.replace("(anonymous namespace)::", "") for name in done.stdout.splitlines()]


def compiled(nvcc, cuobjdump, file, arch, proto):
    """Returns {readable name: Counts} of a file's kernels, and nvcc's warnings."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = f"{folder}/code.cubin"
        done = subprocess.run(
            [nvcc, *FLAGS, f"-arch=sm_{arch}", f"-I{ROOT}/include",
             f"-I{ROOT}/src/{file.split('/')[1]}", f"-isystem={proto}",
             "-isystem=/usr/include/hdf5/serial", ROOT / file, "-o", cubin],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        text, usage = (subprocess.run([cuobjdump, flag, cubin], capture_output=True, text=True,
                                      check=True).stdout for flag in ("-sass", "-res-usage"))
    found = kernels_of(text, re.sub(r":\s*\n\s*", ": ", usage))
    return dict(zip(readable(found), found.values())), done.stderr.strip()


def tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--proto", required=True, help="the generated headers of a build")
    parser.add_argument("--arch", default="80,90a")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--cuobjdump", default=tool("cuobjdump"))
    parser.add_argument("files", nargs="*", default=sorted(BOUNDS))
    args = parser.parse_args()
    nvcc = tool("nvcc")
    if not nvcc or not args.cuobjdump:
        print("machine code: skipped, there is no nvcc or no cuobjdump")
        sys.exit(SKIPPED)
    faults = 0
    for file in args.files:
        for arch in args.arch.split(","):
            kernels, warnings = compiled(nvcc, args.cuobjdump, file, arch, args.proto)
            if warnings:
                faults += 1
                print(f"{file} {arch}: {warnings}")
            for name, counts in kernels.items() if args.all else ():
                print(f"{file} {arch}: {counts}: {name}")
            for bound in BOUNDS.get(file, ()):
                bounded = {name: c for name, c in kernels.items() if bound.kernel in name}
                lines = [f"{name}: {line}" for name, c in bounded.items()
                         for line in broken(bound, c)] or \
                        ([] if bounded else [f"there is no kernel {bound.kernel}"])
                faults += len(lines)
                for line in lines:
                    print(f"{file} {arch}: {line}")
    print(f"machine code: {faults} bounds broken, or warnings")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
