#pragma once
// The numbers of one batch, as the layer that reads it hands them to the net.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "trainer/data/position.h"
#include "trainer/data/read_ahead.h"
#include "trainer/image/pixel_window.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// How the elements of a batch's first output are stored.
enum class BatchForm { kNumbers, kBytes };

// What makes numbers of a batch's bytes: (byte - mean) * scale.
struct PixelNumbers {
  float scale = 1;
  bool mixed = false;  // then each image with the next one of its part, by Batch::shares
  // None, one for all channels, one per channel, or an image of `mean_plane` elements per channel
  // in rows of `mean_row`, (C, H, W), out of which each image's window is cut.
  std::vector<float> mean;
  int64_t mean_row = 0, mean_plane = 0;
};

// One buffer for each output of the layer, in memory order (images NHWC). Labels are floats, as
// losses take them. Made by MakeBatch; a default one has no outputs.
class Batch {
 public:
  int num_outputs() const { return static_cast<int>(buffers_.size()); }
  std::span<float> output(int i) { return buffers_[static_cast<size_t>(i)]; }
  std::span<const float> output(int i) const { return buffers_[static_cast<size_t>(i)]; }

  // In place of output 0, which is then empty, a batch of form kBytes holds a byte for each of its
  // elements, of which the source's PixelNumbers make numbers, the window of its record that each
  // image is, and the share that it keeps where it is mixed with the next one.
  bool holds_bytes() const { return bytes_ != nullptr; }
  std::span<uint8_t> pixels() { return bytes_->pixels; }
  std::span<const uint8_t> pixels() const { return bytes_->pixels; }
  std::span<PixelWindow> windows() { return bytes_->windows; }
  std::span<const PixelWindow> windows() const { return bytes_->windows; }
  std::span<float> shares() { return bytes_->shares; }
  std::span<const float> shares() const { return bytes_->shares; }

  // Of each item: which record of training it is. For sources that mix items.
  std::span<uint64_t> numbers() { return numbers_; }

  Position next;        // after this batch
  int64_t bad = 0;      // records that were bad, in whose places others are
  StageSeconds stages;  // what making it took, where that was measured

 private:
  friend Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory,
                         BatchForm form);
  struct Bytes {
    std::pmr::vector<uint8_t> pixels;
    std::pmr::vector<PixelWindow> windows;
    std::pmr::vector<float> shares;
  };
  // Pointed to, so that moving a batch copies none of it, whatever memory it is in.
  std::vector<std::pmr::vector<float>> buffers_;
  std::vector<uint64_t> numbers_;
  std::unique_ptr<Bytes> bytes_;
};

// The one function that allocates a batch's buffers: one for each shape, zeros, in `memory` (null:
// the heap), which a device that copies them gives.
Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory = nullptr,
                BatchForm form = BatchForm::kNumbers);

}  // namespace trainer
