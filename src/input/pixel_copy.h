#pragma once
// The inner loop of the input pipeline: planar pixels to interleaved floats.

#include <cstdint>

namespace trainer {

// Converts one image (C, H, W), or a window of it, to (H, W, C) floats:
//   out[(h * width + w) * C + c] = (in[c][h][w'] - mean) * scale,  w' = w or width - 1 - w
// `T` is uint8_t or float. Pointers are at the window's first element of channel 0.
template <class T>
struct PixelCopy {
  const T* in = nullptr;
  int64_t in_row = 0, in_plane = 0;             // stride of rows and channels, also of means
  const float* mean_image = nullptr;            // in the layout of `in`, or null
  const float* mean_values = nullptr;           // used without a mean image: entry c * mean_step
  int64_t mean_step = 0;                        // 0: one for all channels
  int64_t channels = 0, height = 0, width = 0;  // of the window
  float scale = 1;
  bool mirror = false;
  float* out = nullptr;
};

// Uses AVX-512 or AVX2 if the processor has it; the result is the same bit for bit.
void ConvertPixels(const PixelCopy<uint8_t>& job);
void ConvertPixels(const PixelCopy<float>& job);

// Copies the bytes to (H, W, C) at `out`, without mean and scale.
void InterleavePixels(const PixelCopy<uint8_t>& job, uint8_t* out);

}  // namespace trainer
