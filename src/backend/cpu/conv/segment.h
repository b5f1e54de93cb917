#pragma once
// Convolutions of images in our own AVX-512 or AVX2 loops, for shapes where oneDNN uses vectors
// poorly: few input channels, or channel counts far from a multiple of 16 (the first layers of
// LeNet, CIFAR-10 quick and CaffeNet; LeNet's second layer).
//
// The library's kernels loop over vectors of channels for each tap. With 1 or 3 input channels, or
// 20 or 50 outputs, most of a vector is empty, and the layer costs as much as one with 16, 32 or 64
// channels. In
// NHWC the elements that one kernel row reads, (kernel_w, channels), are contiguous: a segment. The
// convolution is a product of overlapping segments with the weight:
//   y[n, oh, ow, m] = sum over kh, k of x[n, oh*sh + kh*dh, ow*sw*C + k] * weight[kh, k, m].
// Elements along its inner length, kernel_w * C, are broadcast, so this length need not fill
// vectors. The left operand is read in place, at an offset per pixel and an offset per tap
// (tiles.h): no im2col matrix is written, which for these layers would be several times as large as
// the input.
//
// Outputs that do not fill the last vector (4 of LeNet's 20) are the tail. If that is cheaper, they
// are computed as dot products along the segment, with the segment in the vectors. An image with
// padding is copied into padded scratch, one image per thread, so that the loops need no border
// checks.

#include <algorithm>
#include <memory>
#include <vector>

#include "conv_kernels.h"
#include "cpu/conv/tiles.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer::cpu {

// Lengths and offsets are in floats unless stated otherwise.
struct SegmentShape {
  explicit SegmentShape(const ConvDesc& desc);

  int64_t batch, c, h, w, m, kh, kw, oh, ow, sh, sw, ph, pw, dh;
  int64_t segment;  // kw * c
  int64_t row;      // a row of a padded image
  int64_t padded;   // a padded image
  int64_t x_image;  // an image of the input
  int64_t y_image;  // an image of the output
  int64_t m_wide;   // m rounded up to whole vectors
  int64_t segment_wide;
  int threads;  // maximum threads, each with its own scratch
  bool bias;

  // Returns into how many parts of whole images the batch is divided.
  int Parts() const {
    return static_cast<int>(std::min<int64_t>(batch, int64_t{threads} * kPartsPerThread));
  }
  bool HasPad() const { return ph > 0 || pw > 0; }
  // Copies an image into the middle of a padded image whose border is already 0.
  void CopyInside(const float* image, float* to) const;
  // Returns where each output pixel's window begins in a padded image.
  std::vector<int64_t> PixelOffsets() const;
  // Returns the offset of each weight (kh, kw, c) in a window.
  std::vector<int64_t> TapOffsets() const;
};

// Returns into how many parts a thread's work on a weight gradient of `floats` floats is divided,
// at most `blocks`, each with its own gradient; 1 if adding them would cost more than several parts
// save.
inline int64_t GradientPartsPerThread(int64_t floats, int64_t blocks) {
  constexpr int64_t kMaxFloats = 16 << 10;  // in the gradients of a thread's parts
  return std::clamp<int64_t>(std::min(blocks, kMaxFloats / floats), 1, kPartsPerThread);
}
// Returns the sum of one element over the gradients of all parts, `step` floats apart.
inline float SumOfParts(const float* first, int64_t parts, int64_t step) {
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += first[part * step];
  return sum;
}

// Returns the reason why these loops cannot compute `desc` or are slower, or "". They need AVX-512
// or AVX2, f32, two axes, one group and a kernel that is not dilated along the width.
std::string SegmentsRefuse(const ConvDesc& desc);
// Returns the reason why these loops do not compute the forward pass or the data gradient, or "".
// In addition to the reasons of SegmentsRefuse, they leave 1 x 1 kernels to the library.
std::string SegmentsRefuseForwardOrData(const ConvDesc& desc);

}  // namespace trainer::cpu
