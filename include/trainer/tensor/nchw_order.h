#pragma once
// Converts between the row-major order (N, C, H, W) of files and the NHWC order of images in memory
// (the layout rule of Shape). Device::Copy converts whole tensors on a device: see
// backend/memory/nchw_copy.h.

#include <span>

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
struct NchwOrder {
  int64_t channels = 1, pixels = 1;

  NchwOrder() = default;
  explicit NchwOrder(const Shape& shape) {
    if (!IsNhwc(shape)) return;
    channels = shape[1];
    pixels = shape[2] * shape[3];
  }

  HD int64_t Memory(int64_t plain) const {
    const int64_t size = channels * pixels, at = plain % size;
    return plain - at + at % pixels * channels + at / pixels;
  }
  HD int64_t Plain(int64_t memory) const {
    const int64_t size = channels * pixels, at = memory % size;
    return memory - at + at % channels * pixels + at / channels;
  }
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
