"""The bounds of machine_code.py for the kernels of the backend: what they may need at most or must
do at least; machine_code_layer_bounds.py has those of layers and update rules. Both architectures must keep them, so an upper bound is the larger of two counts."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Bound:
    """Bounds for the kernels of a file whose readable name contains `kernel`, in which ".." stands
    for any text without "<"."""
    kernel: str
    least_loads: int = 0     # loads from global memory before the first store
    most_divisions: int = 0  # reciprocals, and calls of routines that compute one
    most_instructions: int = 1000
    most_registers: int = 64
    most_local: int = 0      # accesses to local memory
    most_inner_divisions: int = 0
    least_overlap: int = 0   # loads in flight at once in the main loop, see sass.main_loop()
    # {bytes: loads and stores of that width in the main loop}
    least_wide: dict = dataclasses.field(default_factory=dict)
    least_packed: int = 0    # instructions of the main loop that round two numbers to 16 bits

    def names(self, name):
        return re.search("[^<]*".join(map(re.escape, self.kernel.split(".."))), name) is not None


# Four channels of four pixels of a tensor in 16 bits; numbers per channel are floats.
SIXTEEN_BITS_OF_FOUR = {8: 8, 16: 2}

BACKEND_BOUNDS = {
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
        Bound("JoinChunksKernel<trainer::MomentsFromOrigin<", 12, 16, 1100,
              most_inner_divisions=8, least_overlap=8),
        Bound("JoinChunksKernel<trainer::MeansOfChunks", 8, 6, 500, least_overlap=4),
        # A thread takes four channels of four pixels. In 16 bits one instruction rounds two
        # numbers, here and below.
        Bound("MapPixelsKernel<4, float, trainer::InputGradient<trainer::MaskedByInput", 20, 2, 450,
              96, least_overlap=8, least_wide={16: 28}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::InputGradient<trainer::MaskedByInput", 20, 0,
              500, 90, least_overlap=8, least_wide=SIXTEEN_BITS_OF_FOUR, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::InputGradient<trainer::MaskedByOutput", 17, 0, 330,
              120, least_overlap=16, least_wide={16: 21}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::InputGradient<trainer::MaskedByOutput", 17, 0,
              410, 80, least_overlap=16, least_wide={8: 16, 16: 5}, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::InputGradient<trainer::PlainGradient", 11, 0, 280,
              96, least_overlap=8, least_wide={16: 15}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::InputGradient<trainer::PlainGradient", 11, 0,
              340, 80, least_overlap=8, least_wide={8: 12, 16: 3}, least_packed=8),
        # With stored statistics, the gradient is only scaled.
        Bound("MapPixelsKernel<4, float, trainer::ScaledGradient<trainer::MaskedByInput", 22, 0,
              320, 80, least_overlap=12, least_wide={16: 22}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::ScaledGradient<trainer::MaskedByInput", 22, 0,
              410, 80, least_overlap=12, least_wide={8: 18, 16: 4}, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::ScaledGradient<", 5, 0, 320, 80,
              least_overlap=5, least_wide={16: 9}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::ScaledGradient<", 5, 0, 410, 80,
              least_overlap=5, least_wide={8: 8, 16: 1}, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::NormalizeAndAdd<", 21, 0, 320, 80,
              least_overlap=12, least_wide={16: 21}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::NormalizeAndAdd<", 21, 0, 405, 80,
              least_overlap=12, least_wide={8: 19, 16: 2}, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::Normalize<", 10, 0, 225, least_overlap=8,
              least_wide={16: 10}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::Normalize<", 10, 0, 270, least_overlap=8,
              least_wide=SIXTEEN_BITS_OF_FOUR, least_packed=8),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::MaskedByInput<float", 20, 5, 730,
              96, least_overlap=8, least_wide={16: 18}),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::MaskedByInput<..Float16", 20, 5,
              790, 96, least_overlap=8, least_wide={8: 14}),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::MaskedByOutput<float", 15, 5, 810,
              112, least_overlap=12, least_wide={16: 14}),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::MaskedByOutput<..Float16", 15, 5,
              890, 96, least_overlap=12, least_wide={8: 12}),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::PlainGradient<float", 9, 5, 760,
              88, least_overlap=8, least_wide={16: 8}),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::PlainGradient<..Float16", 9, 5,
              820, 80, least_overlap=8, least_wide={8: 8}),
        # Also writes g.
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::WrittenThrough<float", 10, 5, 820,
              108, least_overlap=8, least_wide={16: 14}),
        # Also writes g.
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::WrittenThrough<..Float16", 10, 5,
              790, 96, least_overlap=8, least_wide={8: 12}, least_packed=8),
        Bound("SumChunksKernel<4, trainer::Deviations<float", 6, 5, 550, least_overlap=4,
              least_wide={16: 5}),
        Bound("SumChunksKernel<4, trainer::Deviations<..Float16", 6, 5, 600, least_overlap=4,
              least_wide={8: 5}),
        # For a tensor (N, C, L), a thread divides only to find its first pixel and its chunk.
        Bound("MapPixelsKernel<..WithoutChunk<", 4, 3, 740, least_overlap=4),
        Bound("MapPixelsKernel<..WithoutChunk<trainer::Normalize<", 7, 3, 580, least_overlap=7),
        Bound("LongSumsKernel<..PairTerms<trainer::GradientSums<", 1, 5, 1040, least_overlap=4),
        Bound("LongSumsKernel<..PairTerms<trainer::Deviations<", 6, 7, 730, least_overlap=4)),
    "src/backend/cuda/kernels/bias_relu.cc": (
        # A thread takes four channels of four pixels. Bias reads only the biases, once.
        Bound("MapPixelsKernel<4, float, trainer::cuda::BiasRelu<", 8, 0, 390, least_overlap=8,
              least_wide={16: 16}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::cuda::BiasRelu<", 8, 0, 450,
              least_overlap=8, least_wide={8: 16}, least_packed=16),
        Bound("MapPixelsKernel<4, float, trainer::cuda::Bias<", 4, 0, 200, 32, least_overlap=4,
              least_wide={16: 4}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::cuda::Bias<", 4, 0, 210, 32,
              least_overlap=4, least_wide={8: 4}, least_packed=8),
        # For a tensor (N, C, L), a thread divides only to find its first pixel.
        Bound("MapPixelsKernel<..WithoutChunk<trainer::cuda::BiasRelu<", 5, 3, 600, 40,
              least_overlap=5),
        Bound("MapPixelsKernel<..WithoutChunk<trainer::cuda::Bias<", 1, 3, 560, 40)),
    "src/backend/cuda/kernels/lrn.cc": (
        # Divides once, the number of tiles. In the forward pass a thread reads two groups of four
        # channels, 16 bytes each; in the backward pass two groups each from x and from dy.
        Bound("LrnForwardGroupsKernel<float, trainer::UsualPower", 2, 3, 520, least_overlap=2,
              least_wide={16: 4}),
        Bound("LrnForwardGroupsKernel<..Float16, trainer::UsualPower", 2, 3, 530, least_overlap=2,
              least_wide={8: 4}, least_packed=4),
        Bound("LrnBackwardGroupsKernel<float, trainer::UsualPower", 4, 3, 710, least_overlap=4,
              least_wide={16: 6}),
        Bound("LrnBackwardGroupsKernel<..Float16, trainer::UsualPower", 4, 3, 720, least_overlap=4,
              least_wide={8: 6}, least_packed=4),
        # Another exponent than 0.75 is computed by powf, which divides for each element.
        Bound("LrnForwardGroupsKernel<float, trainer::AnyPower", 2, 11, 1080,
              most_inner_divisions=8, least_overlap=2, least_wide={16: 4}),
        Bound("LrnForwardGroupsKernel<..Float16, trainer::AnyPower", 2, 11, 1090,
              most_inner_divisions=8, least_overlap=2, least_wide={8: 4}, least_packed=4),
        Bound("LrnBackwardGroupsKernel<float, trainer::AnyPower", 4, 48, 1680,
              most_inner_divisions=40, least_overlap=4, least_wide={16: 6}),
        Bound("LrnBackwardGroupsKernel<..Float16, trainer::AnyPower", 4, 48, 1710,
              most_inner_divisions=40, least_overlap=4, least_wide={8: 6}, least_packed=4),
        Bound("LrnForwardKernel<..trainer::UsualPower>", 16, 3, 620, least_overlap=4),
        Bound("LrnBackwardKernel<..trainer::UsualPower>", 32, 3, 1110, least_overlap=4),
        Bound("LrnForwardKernel", 16, 6), Bound("LrnBackwardKernel", 32, 23, 1780)),
    "src/backend/cuda/kernels/pool.cc": (
        # Divides once, a row of pixels by the height. The gradient of 2 x 2 windows reads one dy
        # and one tap for each element.
        Bound("FixedMaxAndTap<float, 4, 2, 2>", 4, 3, 370, least_overlap=4, least_wide={16: 5}),
        Bound("FixedMaxAndTap<float, 2, 3, 2>", 9, 3, 450, least_overlap=4, least_wide={8: 10}),
        Bound("FixedMaxAndTap<..Float16, 8, 2, 2>", 4, 3, 500, least_overlap=4,
              least_wide={16: 5}, least_packed=4),
        Bound("FixedMaxGradient<float, 4, 2, 2>", 2, 3, 265, least_overlap=2, least_wide={16: 2}),
        Bound("FixedMaxGradient<float, 4, 3, 2>", 8, 3, 365, least_overlap=4, least_wide={16: 5}),
        Bound("FixedMaxGradient<..Float16, 8, ", 2, 3, 520, least_overlap=2, least_wide={16: 2},
              least_packed=4),
        # In 16 bits, eight channels of nine taps do not fit 64 registers.
        Bound("FixedMaxAndTap<float, 2, 3, 1>", 9, 3, 450, least_overlap=9, least_wide={8: 10}),
        Bound("FixedMaxAndTap<..Float16, 4, 3, ", 9, 3, 590, least_overlap=4, least_wide={8: 10},
              least_packed=2),
        Bound("FixedMaxGradient<float, 4, 3, 1>", 18, 3, 500, least_overlap=6,
              least_wide={16: 10}),
        Bound("FixedMaxGradient<..Float16, 4, 3, 1>", 18, 3, 590, least_overlap=8,
              least_wide={8: 10}, least_packed=2),
        # For other windows, a thread divides to find its first pixel and its windows. It reads
        # several taps ahead; their number is not known to the compiler.
        Bound("::MaxAndTap<float..4>", 7, 3, 520, least_overlap=4, least_wide={16: 7}),
        Bound("::MaxAndTap<..Float16..4>", 7, 3, 575, 56, least_overlap=4, least_wide={8: 7}),
        Bound("::MaxAndTap<..1>", 0, 3, 490, least_overlap=4),
        Bound("::MaxGradient<float..4>", 14, 7, 630, least_overlap=6, least_wide={16: 7}),
        Bound("::MaxGradient<..Float16..4>", 14, 7, 700, least_overlap=8, least_wide={8: 7}),
        Bound("::MaxGradient<", 14, 9, 860, least_overlap=4),
        # Takes the reciprocal of each window's area, once for all channels. The loop over the
        # windows of a gradient is unrolled for four of them.
        Bound("::Average<float, 4>", 0, 9, 775, least_overlap=5, least_wide={16: 31}),
        Bound("::Average<..Float16, 4>", 0, 9, 905, least_overlap=4, least_wide={8: 7}),
        Bound("::Average<", 0, 11, 905, least_overlap=4),
        Bound("::AverageGradient<float, 1>", 7, 39, 1250, most_inner_divisions=8),
        Bound("::AverageGradient<..Float16, 1>", 7, 41, 1335, most_inner_divisions=8),
        Bound("::AverageGradient<float, 4>", 7, 39, 1280, most_inner_divisions=8,
              least_wide={16: 16}),
        Bound("::AverageGradient<..Float16, 4>", 7, 41, 1455, most_inner_divisions=8,
              least_wide={8: 16}, least_packed=4),
        Bound("FixedMaxAndTap", 4, 3, 600, least_overlap=4),
        Bound("FixedMaxGradient", 2, 3, 600, least_overlap=2)),
    "src/backend/cuda/kernels/softmax.cc": (
        # Divides a row by its sum, and to find a thread's row.
        Bound("RowsKernel<trainer::SoftmaxRow<", 32, 9, 800, least_overlap=4),
        Bound("RowsKernel<trainer::SoftmaxGradientRow<", 64, 3, 710, least_overlap=4),
        Bound("RowOfThread<trainer::Softmax", 32, 9, 1070, least_overlap=2)),
    "src/backend/cuda/ops_copy.cc": (
        # Some divide once to unroll the loop over unaligned elements.
        Bound("SameNumber, ..Float16, float>", 2, 0, 130, least_overlap=2,
              least_wide={16: 2, 8: 2}, least_packed=4),
        Bound("SameNumber, float, ..Float16>", 2, 3, 365, least_overlap=2,
              least_wide={16: 2, 8: 2}),
        Bound("SameNumber, ..Float16, ..Float16>", 2, 0, 150, least_overlap=2,
              least_wide={8: 4}, least_packed=4)),
    "src/backend/cuda/ops_sums.cc": (
        # Divides only to find the position of a block's chunk, here and below.
        Bound("LongSumsKernel<trainer::cuda::ProductTerms<", 8, 5, 720, least_overlap=8),
        Bound("NeighbourSumsKernel<trainer::cuda::ProductTerms<", 8, 3, 810, least_overlap=4),
        # Four channels of four pixels, from two arrays.
        Bound("SumChunksKernel<4, trainer::cuda::Product<float", 12, 5, 590, 80, least_overlap=8,
              least_wide={16: 8}),
        Bound("SumChunksKernel<4, trainer::cuda::Product<..Float16", 12, 5, 710, least_overlap=8,
              least_wide={8: 8}),
        Bound("SumChunksKernel<1, trainer::cuda::Product<", 12, 5, 590, least_overlap=8),
        # Also writes what it sums.
        Bound("SumChunksKernel<4, trainer::cuda::MaskedThrough<float", 8, 5, 560, 90,
              least_overlap=8, least_wide={16: 12}),
        Bound("SumChunksKernel<4, trainer::cuda::MaskedThrough<..Float16", 8, 5, 660, 80,
              least_overlap=8, least_wide={8: 12}, least_packed=8),
        # Divides only to find a sum's channel.
        Bound("JoinSumsKernel<1>", 32, 3, 510, 40, least_overlap=6),
        Bound("JoinChunksKernel<trainer::cuda::AddChunks", 4, 0, 580, least_overlap=4)),
    "src/backend/peak_benchmark.cc": (
        # Two groups of four neighbours of each array.
        Bound("UpdateKernel<trainer::AddHalf", 4, 0, 150, least_overlap=4, least_wide={16: 6}),),
}
