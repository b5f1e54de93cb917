"""The bounds of machine_code.py: for each file, what its kernels may need at most or must do at
least. Both architectures must keep them, so an upper bound is the larger of two counts."""

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


def rule(divisions, instructions, inner_divisions, accesses):
    """Returns the bounds of an update rule. All rules divide to find an element's position in a copy
    of the weight in another order; some also divide by a root. A thread reads and writes four
    neighbours of the weight, the gradient and each state."""
    return (Bound("MultiTensorApplyKernel", 8, divisions, instructions, 80,
                  most_inner_divisions=inner_divisions, least_wide={16: accesses}),)


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
        Bound("JoinChunksKernel<trainer::MomentsFromOrigin<", 12, 16, 1100,
              most_inner_divisions=8, least_overlap=8),
        Bound("JoinChunksKernel<trainer::MeansOfChunks", 8, 6, 500, least_overlap=4),
        # A thread takes four channels of four pixels. In 16 bits one instruction rounds two
        # numbers, here and below.
        Bound("MapPixelsKernel<4, float, trainer::InputGradient<trainer::MaskedByInput", 20, 2, 450,
              96, least_overlap=8, least_wide={16: 28}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::InputGradient<trainer::MaskedByInput", 20, 0,
              500, 90, least_overlap=8, least_wide=SIXTEEN_BITS_OF_FOUR, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::Normalize<", 10, 0, 225, least_overlap=8,
              least_wide={16: 10}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::Normalize<", 10, 0, 270, least_overlap=8,
              least_wide=SIXTEEN_BITS_OF_FOUR, least_packed=8),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::MaskedByInput<float", 20, 5, 730,
              96, least_overlap=8, least_wide={16: 18}),
        Bound("SumChunksKernel<4, trainer::GradientSums<trainer::MaskedByInput<..Float16", 20, 5,
              790, 96, least_overlap=8, least_wide={8: 14}),
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
        Bound("FixedMaxAndTap", 4, 3, 600, least_overlap=4),
        Bound("FixedMaxGradient", 2, 3, 600, least_overlap=2)),
    "src/backend/cuda/kernels/softmax.cc": (
        # Divides a row by its sum, and to find a thread's row.
        Bound("RowsKernel<trainer::SoftmaxRow<", 32, 9, 800, least_overlap=4),
        Bound("RowsKernel<trainer::SoftmaxGradientRow<", 64, 3, 710, least_overlap=4),
        Bound("RowOfThread<trainer::Softmax", 32, 9, 1070, least_overlap=2)),
    "src/backend/cuda/ops_copy.cc": (
        Bound("ConvertFour<float, ..Float16>", 1, 0, 150, least_wide={16: 1, 8: 1}, least_packed=2),
        Bound("ConvertFour<..Float16, float>", 1, 0, 150, least_wide={16: 1, 8: 1}),
        Bound("ConvertFour<..Float16, ..Float16>", 1, 0, 150, least_wide={8: 2}, least_packed=2)),
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
        Bound("JoinChunksKernel<trainer::cuda::AddChunks", 4, 0, 580, least_overlap=4)),
    "src/layers/activation/dropout.cc": (
        # A thread draws while it reads its four neighbours.
        Bound("Blocks<1, float", 2, 0, 215, 40, least_overlap=2, least_wide={16: 2}),
        Bound("Blocks<1, ..Float16", 2, 0, 215, 40, least_overlap=2, least_wide={8: 2},
              least_packed=2)),
    "src/layers/activation/prelu.cc": (
        Bound("NeighbourSumsKernel<trainer::SlopeTerm<", 8, 4, 800, least_overlap=2),
        Bound("LongSumsKernel<trainer::SlopeTerm<", 8, 6, 700, least_overlap=4),
        # A thread divides once to find its first channel, here and in broadcast.cc.
        Bound("FourChannelsKernel<1, trainer::PReluForward, float", 4, 1, 130, least_overlap=4,
              least_wide={16: 6}),
        Bound("FourChannelsKernel<1, trainer::PReluForward, ..Float16", 4, 1, 130, least_overlap=4,
              least_wide={16: 2, 8: 4}, least_packed=4),
        Bound("FourChannelsKernel<1, trainer::PReluBackward, float", 6, 1, 140, least_overlap=4,
              least_wide={16: 8}),
        Bound("FourChannelsKernel<1, trainer::PReluBackward, ..Float16", 6, 1, 155,
              least_overlap=3, least_wide={16: 2, 8: 6}, least_packed=4),
        Bound("RepeatedKernel<1, 2, trainer::PReluForward", 8, 2, 235, least_overlap=4),
        Bound("RepeatedKernel<1, 2, trainer::PReluBackward", 12, 2, 255, least_overlap=8)),
    "src/layers/activation/relu.cc": (
        # In f32 a thread divides once to unroll the loop over unaligned elements. In 16 bits one
        # instruction rounds two numbers.
        Bound("WithoutIndex<trainer::Rectify>, float", 2, 3, 360, least_overlap=2,
              least_wide={16: 4}),
        Bound("WithoutIndex<trainer::Rectify>, ..Float16", 2, 0, 165, least_overlap=2,
              least_wide={8: 4}, least_packed=4),
        Bound("WithoutIndex<trainer::ReluForward>, ..Float16", 2, 0, 205, least_overlap=2,
              least_wide={8: 4}, least_packed=4),
        Bound("WithoutIndex<trainer::ReluBackward>, float", 4, 3, 830, least_overlap=4,
              least_wide={16: 6}),
        Bound("WithoutIndex<trainer::ReluBackward>, ..Float16", 4, 0, 470, least_overlap=4,
              least_wide={8: 6}, least_packed=4)),
    "src/layers/conv/embed.cc": (
        # Divides only for images. A thread adds the rows of one index only.
        Bound("AddSortedRowsKernel<trainer::VectorGradients", 8, 18, 830,
              most_inner_divisions=16, least_overlap=4),
        # Reads eight sorted runs of keys.
        Bound("ForEachKernel<trainer::index_add_internal::MergeRuns", 1, 0, 240,
              least_wide={8: 10})),
    "src/layers/detection/ps_roi_pooling.cc": (
        # Divides for a cell's bounds and its mean, and once for a pixel's position in all cells.
        Bound("RowsKernel<trainer::AddToPixels", 8, 26, 990),),
    "src/layers/detection/roi_pooling.cc": (
        Bound("RowsKernel<trainer::AddToWinners", 8, 18, 880),),
    "src/layers/shared/broadcast.cc": (
        # Also divides to find a small element's position, once for all its repetitions.
        Bound("LongSumsKernel<trainer::RepetitionTerms<", 8, 10, 750, most_inner_divisions=4,
              least_overlap=4),
        Bound("NeighbourSumsKernel<trainer::RepetitionTerms<", 8, 8, 760, most_inner_divisions=4,
              least_overlap=4),
        # A thread divides once to unroll the loop over unaligned elements.
        Bound("ScaleShiftAll>, float", 2, 3, 380, least_overlap=2, least_wide={16: 4}),
        Bound("ScaleShiftAll>, ..Float16", 2, 0, 180, least_overlap=2, least_wide={8: 4},
              least_packed=4),
        Bound("FourChannelsKernel<1, trainer::TimesFirst, float", 4, 1, 115, least_overlap=4,
              least_wide={16: 6}),
        Bound("FourChannelsKernel<1, trainer::TimesFirst, ..Float16", 4, 1, 125, least_overlap=4,
              least_wide={16: 2, 8: 4}, least_packed=4),
        Bound("FourChannelsKernel<2, trainer::TimesFirstPlusSecond, float", 6, 1, 125,
              least_overlap=3, least_wide={16: 8}),
        Bound("FourChannelsKernel<2, trainer::TimesFirstPlusSecond, ..Float16", 6, 1, 125,
              least_overlap=3, least_wide={16: 4, 8: 4}, least_packed=4),
        # A thread divides once for each digit of its first index.
        Bound("RepeatedKernel<1, 2, ", 8, 2, 220, 40, least_overlap=8),
        Bound("RepeatedKernel<2, 2, ", 12, 2, 230, 40, least_overlap=6),
        Bound("RepeatedKernel<1, 8, ", 8, 8, 650, 48, least_overlap=6),
        Bound("RepeatedKernel<2, 8, ", 12, 8, 660, 48, least_overlap=8)),
    "src/layers/norm/group_norm.cc": (
        # A thread divides only to find its first pixel, here and in mvn.cc. It reads a channel's
        # statistics once for four pixels.
        Bound("PartSumsKernel<trainer::Along<", 10, 4, 480, least_overlap=4),
        Bound("PartSumsKernel<trainer::SquareAround<", 5, 4, 440, least_overlap=4),
        Bound("PartSumsKernel<trainer::ValueOf<", 4, 4, 420, least_overlap=4),
        Bound("MapPixelsKernel<..trainer::Apply<", 8, 3, 600, least_overlap=6),
        Bound("MapPixelsKernel<..trainer::InputGradient<", 13, 3, 690, least_overlap=8)),
    "src/layers/norm/layer_norm.cc": (
        # Divides a row by its length and its deviation, and to find a warp's row.
        Bound("RowsKernel<trainer::LayerNormStandardize<", 32, 11, 1430, least_overlap=5),
        Bound("RowsKernel<trainer::LayerNormInputGradient<", 32, 9, 1950, least_overlap=8),
        # Divides only to find the position of a block's chunk.
        Bound("NeighbourSumsKernel<trainer::LayerNormParamTerms<", 8, 3, 750, least_overlap=5),
        Bound("LongSumsKernel<trainer::LayerNormParamTerms<", 8, 5, 800, least_overlap=8)),
    "src/layers/norm/mvn.cc": (
        Bound("PartSumsKernel<trainer::ProductOf<", 8, 4, 450, least_overlap=4),
        Bound("MapPixelsKernel<..trainer::Standardize<", 6, 3, 580, least_overlap=6),
        Bound("MapPixelsKernel<..trainer::StandardizeGradient<", 12, 3, 700, least_overlap=8)),
    "src/layers/norm/normalize.cc": (
        # The gradient of the factors divides only to find a thread's first pixel or chunk.
        Bound("PartSumsKernel<trainer::ScaleGradient<", 8, 4, 500, least_overlap=8),
        Bound("PartSumsKernel<trainer::ProductOf<", 8, 4, 480, least_overlap=4),
        Bound("SumsKernel<trainer::SumsOfChunks", 8, 5, 750, least_overlap=4)),
    "src/optim/lbfgs.cc": (
        Bound("UpdateKernel<trainer::AddScaled", 8, 0, 100, least_overlap=8),
        Bound("UpdateKernel<trainer::Subtract", 8, 0, 110, least_overlap=8)),
    "src/optim/rules/adadelta.cc": rule(39, 1590, 8, 8),
    "src/optim/rules/adagrad.cc": rule(39, 1590, 8, 6),
    "src/optim/rules/adam.cc": rule(39, 1620, 8, 8),
    "src/optim/rules/adamw.cc": rule(39, 1620, 8, 8),
    "src/optim/rules/lars.cc": rule(27, 1390, 4, 6),
    "src/optim/rules/nesterov.cc": rule(25, 1390, 4, 6),
    "src/optim/rules/rmsprop.cc": rule(39, 1620, 8, 6),
    "src/optim/rules/sag.cc": rule(25, 1390, 4, 6),
    "src/optim/rules/sgd.cc": rule(25, 1390, 4, 6),
    "src/optim/tree_accumulator.cc": (
        Bound("UpdateKernel<trainer::AddBefore", 8, 0, 95, least_overlap=8),),
    "src/optim/value_clip.cc": (
        # A thread divides once to find the limit, and once to unroll the loop over unaligned
        # elements.
        Bound("ClipGradient>, float", 2, 6, 640, least_overlap=2, least_wide={16: 4}),),
}
