#pragma once
// The numbers of one batch, as the layer that reads it hands them to the net.

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "trainer/data/position.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// One buffer for each output of the layer, in memory order (images NHWC). Labels are floats, as
// losses take them. Made by MakeBatch; a default one has no outputs.
class Batch {
 public:
  int num_outputs() const { return static_cast<int>(buffers_.size()); }
  std::span<float> output(int i) { return buffers_[static_cast<size_t>(i)]; }
  std::span<const float> output(int i) const { return buffers_[static_cast<size_t>(i)]; }

  Position next;  // after this batch

 private:
  friend Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory);
  std::vector<std::pmr::vector<float>> buffers_;
};

// The one function that allocates a batch's buffers: one for each shape, zeros, in `memory` (null:
// the heap), which a device that copies them gives.
Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory = nullptr);

}  // namespace trainer
