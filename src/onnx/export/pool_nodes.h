#pragma once

#include <cstdint>
#include <string>

#include "export/graph_writer.h"

namespace trainer {

// The windows of a pooling along one axis.
struct PoolAxis {
  int64_t in = 1, kernel = 1, stride = 1, pad = 0, out = 1;

  // Returns the padding after the input that makes the last window complete; negative if it leaves
  // out elements.
  int64_t EndPad() const { return (out - 1) * stride + kernel - in - pad; }
  // Returns whether the last window has an element of the input.
  bool LastWindowHasElements() const { return (out - 1) * stride - pad < in; }
};

// Adds the pooling of images (N, C, H, W) with Caffe's windows. Caffe rounds the number of windows
// up, and ceil_mode means different things in different runtimes, so the padding at the end is
// written out.
std::string AddMaxPool(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                       const PoolAxis& w);
// Returns also the positions h * W + w of the largest values.
GraphWriter::Names AddMaxPoolWithPlaces(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                                        const PoolAxis& w);
std::string AddAveragePool(GraphWriter& graph, const std::string& x, const PoolAxis& h,
                           const PoolAxis& w);

}  // namespace trainer
