#pragma once

#include <cstdint>
#include <string>

#include "export/graph_writer.h"

namespace trainer {

// Describes the windows of a pooling along one axis.
struct PoolAxis {
  int64_t in = 1, kernel = 1, stride = 1, pad = 0, out = 1;

  // Returns how much padding after the input completes the last window. The result is negative if
  // that window leaves out elements.
  int64_t EndPad() const { return (out - 1) * stride + kernel - in - pad; }
  // Returns whether the last window has an element of the input.
  bool LastWindowHasElements() const { return (out - 1) * stride - pad < in; }
};

// Adds the pooling of images (N, C, H, W) with Caffe's windows. Caffe rounds the number of windows
// up, but runtimes disagree about ceil_mode, so the padding at the end is explicit.
std::string AddMaxPool(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                       const PoolAxis& w);
// Also returns the positions h * W + w of the largest values.
GraphWriter::Names AddMaxPoolWithPlaces(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                                        const PoolAxis& w);
std::string AddAveragePool(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                           const PoolAxis& w);

}  // namespace trainer
