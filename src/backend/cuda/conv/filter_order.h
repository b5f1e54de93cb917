#pragma once
// Conversion of convolution weights between our order, (filters, channels, taps) in f32, and a
// library's order: the same, or with channels innermost, in the tensors' storage type.

#include <cstdint>

#include "trainer/backend/device/device.h"

namespace trainer::cuda {

struct FilterOrder {
  int64_t filters = 0, channels = 0, taps = 0;  // channels per group; taps: kernel positions
  bool channels_innermost = false;
  DType dtype = DType::kF32;

  int64_t Count() const { return filters * channels * taps; }
  // Returns whether the library's array equals ours bit for bit, so that nothing need be converted.
  bool IsOurs() const {
    return dtype == DType::kF32 && (!channels_innermost || channels == 1 || taps == 1);
  }
};

// Writes our weights to `library`, in the library's order and type.
void PutFilter(const Device& device, const FilterOrder& order, const float* weight, void* library);
// Adds `library`, a gradient in the library's order and type, to ours.
void AddFilterGradient(const Device& device, const FilterOrder& order, const void* library,
                       float* gradient);

}  // namespace trainer::cuda
