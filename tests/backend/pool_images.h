#pragma once
// Provides image pools for tests.

#include "trainer/backend/primitives/pool.h"

namespace trainer {

// Rounds the size up and clips the last window, as the layer does by default.
inline int64_t OutOf(int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t out = (in + 2 * pad - kernel + stride - 1) / stride + 1;
  return pad > 0 && (out - 1) * stride >= in + pad ? out - 1 : out;
}

inline PoolDesc SquarePool(int64_t n, int64_t c, int64_t h, int64_t w, int64_t kernel,
                           int64_t stride, int64_t pad = 0) {
  return {.batch = n,
          .channels = c,
          .in_h = h,
          .in_w = w,
          .out_h = OutOf(h, kernel, stride, pad),
          .out_w = OutOf(w, kernel, stride, pad),
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

}  // namespace trainer
