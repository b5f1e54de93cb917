#pragma once

#include "import/import_graph.h"

namespace trainer {

// Describes the windows of a convolution or a pooling along each spatial axis.
struct ImportWindow {
  Dims kernel, stride, dilation, pad_begin, pad_end, in, out;
};

// Reads the windows of a Conv, MaxPool or AveragePool for an input of shape (N, C, spatial...).
// `kernel` is the kernel of the weight, or empty if an attribute gives it. Throws by graph.Refuse
// for values that do not fit.
ImportWindow ReadWindow(const ImportGraph& graph, const ImportNode& node, const Dims& input,
                        Dims kernel);
// Reads the windows of a ConvTranspose, whose output is larger than its input. Padding at the end
// may be negative, because output_padding is subtracted from it.
ImportWindow ReadTransposedWindow(const ImportGraph& graph, const ImportNode& node,
                                  const Dims& input, Dims kernel);

}  // namespace trainer
