#pragma once
// The inner loop of the data path: planar pixels to interleaved floats.

#include <cstdint>

namespace trainer {

// Converts one image (C, H, W), or a window of it, to (H, W, C) floats:
//   out[(h * width + w) * C + c] = (in[c][h][w'] - mean) * scale,  w' = w or width - 1 - w
// `T` is uint8_t or float. Pointers stand at the window's first element of channel 0.
template <class T>
struct PixelJob {
  const T* in = nullptr;
  int64_t in_row = 0, in_plane = 0;    // elements from one row, one channel to the next; means too
  const float* mean_image = nullptr;   // laid out like `in`; or null
  const float* mean_values = nullptr;  // where there is no mean image: entry c * mean_step
  int64_t mean_step = 0;               // 0: one for all channels
  int64_t channels = 0, height = 0, width = 0;  // of the window
  float scale = 1;
  bool mirror = false;
  float* out = nullptr;
};

// Uses AVX-512 or AVX2 where the processor has it; the result is the same bit for bit.
void ConvertPixels(const PixelJob<uint8_t>& job);
void ConvertPixels(const PixelJob<float>& job);

// The bytes themselves, to (H, W, C) at `out`: neither mean nor scale.
void InterleavePixels(const PixelJob<uint8_t>& job, uint8_t* out);

}  // namespace trainer
