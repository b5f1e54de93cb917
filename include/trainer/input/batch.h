#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "trainer/input/counters.h"
#include "trainer/input/normalize.h"
#include "trainer/input/position.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Element type of a batch's first output.
enum class PixelType { kFloat, kByte };

// Converts bytes to floats: (byte - mean) * scale.
struct Normalization {
  float scale = 1;
  bool mixed = false;  // each image is mixed with the next one of its rank, by Batch::mix_weights
  bool cut = false;    // and by Batch::cut_boxes
  // Holds no value, one for all channels, one per channel, or an image (C, H, W) with `mean_plane`
  // elements per channel in rows of `mean_row`, from which each image's window is cropped.
  std::vector<float> mean;
  int64_t mean_row = 0, mean_plane = 0;
};

// One buffer for each output of the layer, in memory order (images NHWC). Labels are floats, as
// losses read them. MakeBatch allocates the buffers; a default-constructed batch has no outputs.
class Batch {
 public:
  int num_outputs() const { return static_cast<int>(buffers_.size()); }
  std::span<float> output(int i) { return buffers_[static_cast<size_t>(i)]; }
  std::span<const float> output(int i) const { return buffers_[static_cast<size_t>(i)]; }

  // A batch of type kByte has these arrays instead of output 0: a byte for each element, before
  // Normalization; each image's crop in its record; if it is mixed with the next one, its
  // weight and the box that the next one replaces.
  bool has_bytes() const { return bytes_ != nullptr; }
  std::span<uint8_t> pixels() { return bytes_->pixels; }
  std::span<const uint8_t> pixels() const { return bytes_->pixels; }
  std::span<CropOffset> crop_offsets() { return bytes_->crop_offsets; }
  std::span<const CropOffset> crop_offsets() const { return bytes_->crop_offsets; }
  std::span<float> mix_weights() { return bytes_->mix_weights; }
  std::span<const float> mix_weights() const { return bytes_->mix_weights; }
  std::span<CutBox> cut_boxes() { return bytes_->cut_boxes; }
  std::span<const CutBox> cut_boxes() const { return bytes_->cut_boxes; }

  // The record number of each item, for sources that mix items.
  std::span<uint64_t> numbers() { return numbers_; }

  Position next;     // after this batch
  int64_t bad = 0;   // bad records, which other records replace
  WorkSeconds work;  // time spent on this batch, if it was measured

 private:
  friend Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory,
                         PixelType type);
  struct Bytes {
    std::pmr::vector<uint8_t> pixels;
    std::pmr::vector<CropOffset> crop_offsets;
    std::pmr::vector<float> mix_weights;
    std::pmr::vector<CutBox> cut_boxes;
  };
  // This is a pointer so that moving a batch copies nothing, whatever memory it uses.
  std::vector<std::pmr::vector<float>> buffers_;
  std::vector<uint64_t> numbers_;
  std::unique_ptr<Bytes> bytes_;
};

// Allocates a batch's buffers, one for each shape, filled with zeros, in `memory` (null: the heap).
// Every batch is made here. A device that copies batches provides the memory.
Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory = nullptr,
                PixelType type = PixelType::kFloat);

}  // namespace trainer
