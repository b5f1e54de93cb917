#pragma once
// Convolutions of images, for tests.

#include "trainer/backend/conv.h"

namespace trainer {

inline ConvDesc Image(int64_t n, int64_t c, int64_t h, int64_t w, int64_t m, int64_t kernel,
                      int64_t stride = 1, int64_t pad = 0, int64_t group = 1,
                      int64_t dilation = 1) {
  return {.batch = n,
          .in_channels = c,
          .out_channels = m,
          .group = group,
          .in = {h, w},
          .kernel = {kernel, kernel},
          .stride = {stride, stride},
          .pad = {pad, pad},
          .dilation = {dilation, dilation}};
}

}  // namespace trainer
