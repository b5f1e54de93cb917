"""The bounds of machine_code.py for the kernels of layers, weights and update rules."""

from machine_code_bounds import Bound


def rule(divisions, instructions, inner_divisions, accesses):
    """Returns the bounds of an update rule. All rules divide twice before the loop, to prepare for
    finding elements' positions in a copy of the weight in another order; some also divide by a
    root. A thread reads and writes four neighbours of the weight, the gradient and each state, and
    of a copy in the same order."""
    return (Bound("MultiTensorApplyKernel", 8, divisions, instructions, 80,
                  most_inner_divisions=inner_divisions, least_wide={16: accesses, 8: 2},
                  least_packed=4),)


LAYER_BOUNDS = {
    "src/layers/activation/dropout.cc": (
        # A thread draws while it reads two groups of four neighbours; also reads the pass.
        Bound("Drawn<trainer::KeepOrDrop<trainer::Same> >, float", 3, 0, 850, least_overlap=2,
              least_wide={16: 4}),
        Bound("Drawn<trainer::KeepOrDrop<trainer::Same> >, ..Float16", 3, 0, 770, 56,
              least_overlap=2, least_wide={8: 4}, least_packed=4)),
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
        Bound("WithoutIndex<trainer::ReluForward>, float", 2, 3, 440, least_overlap=2,
              least_wide={16: 4}),
        Bound("WithoutIndex<trainer::ReluBackward>, float", 4, 3, 830, least_overlap=4,
              least_wide={16: 6}),
        # With a fused Dropout, a thread draws while it reads two groups of four neighbours.
        Bound("Drawn<trainer::KeepOrDrop<trainer::Rectify> >, float", 3, 0, 850, least_overlap=2,
              least_wide={16: 4}),
        Bound("Drawn<trainer::KeepOrDrop<trainer::Rectify> >, ..Float16", 3, 0, 770, 56,
              least_overlap=2, least_wide={8: 4}, least_packed=4),
        Bound("WithoutIndex<trainer::DroppedBackward>, float", 4, 3, 515, least_overlap=4,
              least_wide={16: 6}),
        Bound("WithoutIndex<trainer::DroppedBackward>, ..Float16", 4, 0, 255, least_overlap=4,
              least_wide={8: 6}, least_packed=4),
        Bound("WithoutIndex<trainer::ReluBackward>, ..Float16", 4, 0, 470, least_overlap=4,
              least_wide={8: 6}, least_packed=4)),
    "src/layers/conv/embed.cc": (
        # A thread adds the rows of one index only.
        Bound("AddSortedRowsKernel<trainer::VectorGradients", 19, 0, 480, 40, least_overlap=4),
        # Divides only to find the position of a block's chunk. The loop has the code for images
        # and for other tensors.
        Bound("NeighbourSumsKernel<..TermOfRow<trainer::VectorGradients", 16, 3, 725, 40,
              least_overlap=5),
        # A thread divides to unroll its loop.
        Bound("ForEachKernel<trainer::index_add_internal::MakeKeys<", 1, 3, 895, 40),
        # Reads eight sorted runs of keys.
        Bound("ForEachKernel<trainer::index_add_internal::MergeRuns", 1, 0, 240,
              least_wide={8: 10})),
    "src/layers/detection/ps_roi_pooling.cc": (
        # Divides for a cell's bounds and its mean, and once for a pixel's position in all cells.
        Bound("RowsKernel<trainer::AddToPixels", 8, 26, 990),),
    "src/layers/detection/roi_pooling.cc": (
        Bound("RowsKernel<trainer::AddToWinners", 8, 18, 880),),
    "src/layers/shape/eltwise.cc": (
        # In f32 a thread divides once to unroll the loop over unaligned elements, here and below.
        Bound("WithoutIndex<trainer::Weigh..>, float", 4, 3, 500, 40, least_overlap=4,
              least_wide={16: 6}),
        Bound("WithoutIndex<trainer::Weigh..>, ..Float16", 4, 0, 250, 40, least_overlap=4,
              least_wide={8: 6}, least_packed=4),
        Bound("WithoutIndex<..>, float, float, float>", 4, 3, 515, 40, least_overlap=4,
              least_wide={16: 6}),
        Bound("WithoutIndex<trainer::ScaleWherePositive>, ..Float16", 4, 0, 255, 40,
              least_overlap=4, least_wide={8: 6}, least_packed=4),
        Bound("WithoutIndex<trainer::AddScaled>, ..Float16", 4, 0, 225, 40, least_overlap=4,
              least_wide={8: 6}, least_packed=4),
        Bound("Equal>, float", 6, 3, 530, 40, least_overlap=3, least_wide={16: 8}),
        Bound("Equal>, ..Float16", 6, 0, 280, 40, least_overlap=6, least_wide={8: 8},
              least_packed=4),
        Bound("WithoutIndex<trainer::ScaleByCoefficient>, float", 2, 3, 385, 40, least_overlap=2,
              least_wide={16: 4}),
        Bound("WithoutIndex<trainer::ScaleByCoefficient>, ..Float16", 2, 0, 175, 40,
              least_overlap=2, least_wide={8: 4}, least_packed=4),
        # Divides two groups of four elements by the input.
        Bound("WithoutIndex<trainer::Quotient>", 6, 44, 920, 48, most_inner_divisions=16,
              least_overlap=3)),
    "src/layers/shape/split.cc": (
        Bound("WithoutIndex<trainer::Add>, float", 4, 3, 610, 48, least_overlap=3,
              least_wide={16: 6}),
        Bound("WithoutIndex<trainer::Add>, ..Float16", 4, 0, 330, 40, least_overlap=4,
              least_wide={8: 6}, least_packed=4)),
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
        Bound("FourChannelsKernel<1, trainer::PlusFirst, float", 4, 1, 115, 40, least_overlap=4,
              least_wide={16: 6}),
        Bound("FourChannelsKernel<1, trainer::PlusFirst, ..Float16", 4, 1, 125, 40,
              least_overlap=4, least_wide={16: 2, 8: 4}, least_packed=4),
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
        # A thread takes four channels of four pixels, and reads the channels' statistics once for
        # the four pixels, here and in mvn.cc. In 16 bits one instruction rounds two numbers.
        Bound("PartSumsKernel<4, trainer::Along<float", 10, 1, 335, 72, least_overlap=10,
              least_wide={16: 10}),
        Bound("PartSumsKernel<4, trainer::Along<..Float16", 10, 1, 390, least_overlap=10,
              least_wide={8: 8, 16: 2}),
        Bound("PartSumsKernel<4, trainer::SquareAround<float", 5, 1, 290, 56, least_overlap=5,
              least_wide={16: 5}),
        Bound("PartSumsKernel<4, trainer::SquareAround<..Float16", 5, 1, 315, 48,
              least_overlap=5, least_wide={8: 4, 16: 1}),
        Bound("PartSumsKernel<4, trainer::ValueOf<float", 4, 1, 250, 48, least_overlap=4,
              least_wide={16: 4}),
        Bound("PartSumsKernel<4, trainer::ValueOf<..Float16", 4, 1, 275, 40, least_overlap=4,
              least_wide={8: 4}),
        # A loop has the code for both cases, with and without learned factors.
        Bound("MapPixelsKernel<4, float, trainer::Apply<", 13, 0, 285, least_overlap=8,
              least_wide={16: 17}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::Apply<", 13, 0, 355, least_overlap=8,
              least_wide={8: 11, 16: 6}, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::InputGradient<", 23, 0, 410, 86,
              least_overlap=13, least_wide={16: 27}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::InputGradient<", 23, 0, 570, 72,
              least_overlap=13, least_wide={8: 18, 16: 9}, least_packed=8),
        # If their number is no multiple of four, a thread takes one channel of four pixels. It
        # divides only to find its first pixel.
        Bound("PartSumsKernel<1, trainer::Along<", 10, 4, 470, 40, least_overlap=6),
        Bound("PartSumsKernel<1, trainer::SquareAround<", 5, 4, 435, 32, least_overlap=4),
        Bound("PartSumsKernel<1, trainer::ValueOf<", 4, 4, 410, 32, least_overlap=4),
        Bound("MapPixelsKernel<1, ..trainer::Apply<", 8, 3, 585, 40, least_overlap=6),
        Bound("MapPixelsKernel<1, ..trainer::InputGradient<", 13, 3, 660, 40, least_overlap=13)),
    "src/layers/norm/layer_norm.cc": (
        # Divides a row by its length and its deviation, and to find a warp's row.
        Bound("RowsKernel<trainer::LayerNormStandardize<", 32, 11, 1430, least_overlap=5),
        Bound("RowsKernel<trainer::LayerNormInputGradient<", 32, 9, 1950, least_overlap=8),
        # Divides only to find the position of a block's chunk.
        Bound("NeighbourSumsKernel<trainer::LayerNormParamTerms<", 8, 3, 750, least_overlap=5),
        Bound("JoinSumsKernel<2>", 32, 3, 525, 40, least_overlap=6),
        Bound("LongSumsKernel<trainer::LayerNormParamTerms<", 8, 5, 800, least_overlap=8)),
    "src/layers/norm/mvn.cc": (
        Bound("PartSumsKernel<4, trainer::ProductOf<float", 8, 1, 285, least_overlap=8,
              least_wide={16: 8}),
        Bound("PartSumsKernel<4, trainer::ProductOf<..Float16", 8, 1, 335, 52, least_overlap=8,
              least_wide={8: 8}),
        # A loop has the code for both cases, with and without the division by the deviation.
        Bound("MapPixelsKernel<4, float, trainer::Standardize<", 6, 0, 345, 60, least_overlap=6,
              least_wide={16: 13}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::Standardize<", 6, 0, 440, 56,
              least_overlap=6, least_wide={8: 11, 16: 2}, least_packed=8),
        Bound("MapPixelsKernel<4, float, trainer::StandardizeGradient<", 12, 0, 270, 84,
              least_overlap=12, least_wide={16: 16}),
        Bound("MapPixelsKernel<4, ..Float16, trainer::StandardizeGradient<", 12, 0, 360,
              least_overlap=12, least_wide={8: 12, 16: 4}, least_packed=8),
        Bound("PartSumsKernel<1, trainer::ProductOf<", 8, 4, 440, 40, least_overlap=8),
        Bound("MapPixelsKernel<1, ..trainer::Standardize<", 6, 3, 565, 40, least_overlap=6),
        Bound("MapPixelsKernel<1, ..trainer::StandardizeGradient<", 12, 3, 680, 40,
              least_overlap=12)),
    "src/layers/norm/normalize.cc": (
        # The gradient of the factors divides only to find a thread's first pixel or chunk.
        Bound("PartSumsKernel<1, trainer::ScaleGradient<", 8, 4, 500, least_overlap=8),
        Bound("PartSumsKernel<1, trainer::ProductOf<", 8, 4, 440, 40, least_overlap=8),
        Bound("PartSumsKernel<4, trainer::ProductOf<float", 8, 1, 285, least_overlap=8,
              least_wide={16: 8}),
        Bound("PartSumsKernel<4, trainer::ProductOf<..Float16", 8, 1, 335, 52, least_overlap=8,
              least_wide={8: 8}),
        Bound("SumsKernel<trainer::SumsOfChunks", 8, 5, 750, least_overlap=4)),
    "src/net/io/packed_weights.cc": (
        # Reads a weight and writes its copy. Divides twice before the loop, as update rules do.
        Bound("MultiTensorApplyKernel<1, ", 9, 2, 720, 48, least_wide={16: 2, 8: 2},
              least_packed=4),),
    "src/optim/ema.cc": (
        # An average has no copy in another order, but shares the loop of update rules.
        Bound("MultiTensorApplyKernel<2, ", 10, 2, 800, 48, least_wide={16: 4, 8: 2},
              least_packed=4),),
    "src/optim/gradient_stats.cc": (
        # A thread divides to count the rounds of its unrolled loop.
        Bound("reduce_internal::ChunksKernel<", 5, 3, 320, 32, least_overlap=4),
        Bound("reduce_internal::TotalKernel<", 16, 0, 320, 40, least_overlap=8),
        Bound("segments_internal::SumChunksKernel<", 9, 5, 510, 40, least_overlap=4),
        Bound("segments_internal::SumSegmentKernel<", 16, 0, 320, 40, least_overlap=8)),
    "src/optim/lbfgs.cc": (
        # A thread reads two groups of four neighbours of each array, here and below.
        Bound("UpdateKernel<trainer::AddScaled", 4, 0, 155, least_overlap=4, least_wide={16: 6}),
        Bound("UpdateKernel<trainer::Subtract", 4, 0, 170, least_overlap=4, least_wide={16: 6})),
    "src/optim/rules/adadelta.cc": rule(17, 1230, 2, 9),
    "src/optim/rules/adagrad.cc": rule(17, 1230, 2, 7),
    "src/optim/rules/adam.cc": rule(17, 1230, 2, 9),
    "src/optim/rules/adamw.cc": rule(17, 1230, 2, 9),
    "src/optim/rules/lars.cc": rule(9, 1070, 0, 7),
    "src/optim/rules/nesterov.cc": rule(7, 1070, 0, 7),
    "src/optim/rules/rmsprop.cc": rule(17, 1230, 2, 7),
    "src/optim/rules/sag.cc": rule(7, 1070, 0, 7),
    "src/optim/rules/sgd.cc": rule(7, 1070, 0, 7),
    "src/optim/tree_accumulator.cc": (
        Bound("UpdateKernel<trainer::AddBefore", 4, 0, 150, least_overlap=4, least_wide={16: 6}),),
    "src/optim/value_clip.cc": (
        # A thread divides once to find the limit, and once to unroll the loop over unaligned
        # elements.
        Bound("ClipGradient>, float", 2, 6, 640, least_overlap=2, least_wide={16: 4}),),
}
