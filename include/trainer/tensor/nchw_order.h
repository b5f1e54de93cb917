#pragma once
// Converts between the row-major order (N, C, H, W) of files and the NHWC order of images in memory
// (the layout rule of Shape). Device::Copy converts whole tensors on a device: see
// backend/memory/nchw_copy.h.

#include <span>

#include "trainer/base/divider.h"
#include "trainer/base/host_device.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Returns whether a tensor's memory order differs from its row-major order: it is an image with
// several channels and several pixels.
inline bool IsNhwc(const Shape& shape) {
  return shape.IsImage() && shape[1] > 1 && shape[2] * shape[3] > 1;
}

// Memory() converts an element's index in row-major order to its offset in memory; Plain() does the
// reverse.
class NchwOrder {
 public:
  NchwOrder() = default;
  explicit NchwOrder(const Shape& shape) {
    if (!IsNhwc(shape)) return;
    channels_ = LongDivider(static_cast<uint64_t>(shape[1]));
    pixels_ = LongDivider(static_cast<uint64_t>(shape[2] * shape[3]));
  }

  // Returns the distance in memory between neighbours along the last axis; 1 if the orders are
  // equal.
  HD int64_t Step() const { return static_cast<int64_t>(channels_.by()); }
  HD int64_t Memory(int64_t plain) const {
    return static_cast<int64_t>(TransposedIndex(static_cast<uint64_t>(plain), channels_, pixels_));
  }
  HD int64_t Plain(int64_t memory) const {
    return static_cast<int64_t>(TransposedIndex(static_cast<uint64_t>(memory), pixels_, channels_));
  }

 private:
  LongDivider channels_, pixels_;
};

// Transposes consecutive matrices of (rows, columns): an image's (channels, pixels) becomes
// (pixels, channels). Both spans are on the host, equally long, and must not overlap.
inline void TransposeMatrices(std::span<const float> from, std::span<float> to, int64_t rows,
                              int64_t columns) {
  const size_t size = static_cast<size_t>(rows * columns);
  for (size_t start = 0; start < from.size(); start += size) {
    const float* const matrix = from.data() + start;
    float* out = to.data() + start;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) *out++ = matrix[i * columns + j];
    }
  }
}

}  // namespace trainer
