#pragma once
// Depthwise 3 x 3 convolutions of images (as many groups as channels, one output each) by own
// loops. A pixel of a channel is 9 multiply-adds for one number read and one written, so that the
// memory is the limit, and each number should be loaded once per line.
//
// Vectors run over the channels of NHWC: no number of one channel meets one of another. Of a line,
// 7 or 8 neighbouring targets are held in registers at once. Each source of their window is loaded
// once and added, times one of 3 weights, to up to 3 of them; that is a row of the kernel, and the
// three rows follow each other. Going back is the same loop over dx: a pixel of dx gathers from the
// pixels of dy that it has reached, so that nothing is scattered, no two threads add to one number,
// and every target is written once, past the caches where it is large. Rows outside of the image
// point to zeros, so that the loops know no borders.

#include <memory>
#include <span>
#include <vector>

#include "conv_kernels.h"
#include "cpu/simd.h"

namespace trainer::cpu {

// Why these loops cannot do it, or "": they take 3 x 3 kernels of two axes with one input and one
// output channel per group, in steps of 1 or 2 along the width, columns not dilated.
std::string DepthwiseRefuses(const ConvDesc& desc);

inline constexpr int kTaps = 9;  // of the kernel, in row-major order

// How some neighbouring targets hang together with the sources of their window, along the width: x
// and y going forward, dy and dx going back (kBack).
template <int S, bool kBack>
struct DepthwiseWindow {
  // Images are often 7 * 2^k wide.
  static constexpr int kTargets = kBack && S == 2 ? 8 : 7;
  static constexpr int kSources = kBack ? (kTargets + 1) / S + 1 : (kTargets - 1) * S + 3;

  // The target that source i reaches through column k of the kernel, or -1.
  static constexpr int TargetOf(int i, int k) {
    const int at = kBack ? S * i + k - 2 : (i - k) / S;
    const bool meets = kBack || (i >= k && (i - k) % S == 0);
    return meets && at >= 0 && at < kTargets ? at : -1;
  }
  // Where the first window of a line begins, and the first source of a window: at a target from
  // which TargetOf gives the others.
  static int64_t FirstTarget(int64_t pad) { return kBack && S == 2 && pad % 2 != 0 ? -1 : 0; }
  static int64_t FirstSource(int64_t target, int64_t pad) {
    return kBack ? (target + pad - 2) / S : target * S - pad;
  }
  // Whether the line before has not read the sources that row r of the kernel meets.
  static constexpr bool IsNew(int r) { return kBack ? r == 0 : r >= 3 - S; }
};

// Where the rows of the sources lie that meet rows 0, 1 and 2 of the kernel for a target row, in
// elements from the image's start; -1 where there is none.
struct DepthwiseRows {
  int64_t at[3];
};
std::vector<DepthwiseRows> ForwardRows(const ConvDesc& desc);
std::vector<DepthwiseRows> BackwardRows(const ConvDesc& desc);

}  // namespace trainer::cpu
