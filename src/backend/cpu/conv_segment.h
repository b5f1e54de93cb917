#pragma once
// Convolutions of images by own AVX-512 loops, for the shapes where oneDNN leaves much unused: few
// input channels, or channel counts far from a multiple of 16 (the first layers of LeNet, CIFAR-10
// quick and CaffeNet; LeNet's second).
//
// In NHWC the numbers that one kernel row reads, (kernel_w, channels), lie in one piece: a segment.
// The convolution is then a product of overlapping segments with the weight, without any im2col:
//   y[n, oh, ow, m] = sum over kh, k of x[n, oh*sh + kh*dh, ow*sw*C + k] * weight[kh, k, m].

#include <memory>
#include <vector>

#include "conv_steps.h"
#include "cpu/tiles.h"
#include "trainer/backend/carve.h"
#include "trainer/base/thread_team.h"

namespace trainer::cpu {

// Lengths and offsets in floats where nothing else is said.
struct SegmentShape {
  explicit SegmentShape(const ConvDesc& desc);

  int64_t batch, c, h, w, m, kh, kw, oh, ow, sh, sw, ph, pw, dh;
  int64_t segment;  // kw * c
  int64_t row;      // of a padded image
  int64_t padded;   // a padded image
  int64_t x_image;  // an image of the input
  int64_t y_image;  // an image of the output
  int64_t m_wide;   // m filled up to whole vectors
  int64_t segment_wide;
  int threads;  // parts that the work is cut into, each with scratch of its own
  bool bias;

  bool HasPad() const { return ph > 0 || pw > 0; }
  // Copies an image into the middle of a padded one whose border is 0 already.
  void CopyInside(const float* image, float* to) const;
  // Where each output pixel's window begins in a padded image, and each weight in the window.
  std::vector<int64_t> PixelOffsets() const;
  std::vector<int64_t> TapOffsets() const;
};

// Why these loops cannot do it or are not the faster ones, or "". They need AVX-512, f32, two axes,
// one group and columns of the kernel that are not dilated.
std::string SegmentsRefuse(const ConvDesc& desc);

}  // namespace trainer::cpu
