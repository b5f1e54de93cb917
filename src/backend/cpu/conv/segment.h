#pragma once
// Convolutions of images by own AVX-512 loops, for the shapes where oneDNN leaves much unused: few
// input channels, or channel counts far from a multiple of 16 (the first layers of LeNet, CIFAR-10
// quick and CaffeNet; LeNet's second).
//
// The library's kernels go tap by tap over vectors of channels. With 1 or 3 input channels, or 20
// or 50 outputs, most of a vector is empty, and the work is that of 16, 32 or 64 channels. In NHWC
// the numbers that one kernel row reads, (kernel_w, channels), are contiguous: a segment. The
// convolution is a product of overlapping segments with the weight:
//   y[n, oh, ow, m] = sum over kh, k of x[n, oh*sh + kh*dh, ow*sw*C + k] * weight[kh, k, m].
// Its inner length, kernel_w * C, is what is broadcast, so that it need not fill vectors at all.
// The left operand is read in place, at an offset per pixel and one per tap (tiles.h): no matrix of
// patches is written, which for these layers would be several times the input.
//
// Outputs that do not fill the last vector (4 of LeNet's 20) are the tail. Where that is the
// cheaper, they are computed as dot products along the segment instead, with the segment in the
// vectors. Padding is copied around an image into scratch, one image per thread, so that the loops
// know no borders.

#include <memory>
#include <vector>

#include "conv_kernels.h"
#include "cpu/conv/tiles.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/thread/thread_team.h"

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
// The same, and for the forward pass and the data gradient 1 x 1 kernels, too.
std::string SegmentsRefuseForwardOrData(const ConvDesc& desc);

}  // namespace trainer::cpu
