#pragma once
// Depthwise 3 x 3 convolutions of images (as many groups as channels, one output each) in our own
// loops. A pixel of a channel needs 9 multiply-adds for one element read and one written, so the
// speed is limited by the memory, and each element should be loaded once per line.
//
// Vectors run over the channels of NHWC, because channels do not mix. For 7 or 8 neighbouring
// targets of a line, the sums are held in registers. Each source of their window is loaded once,
// multiplied by the 3 weights of a kernel row and added to up to 3 targets; the three rows follow
// one after the other. The data gradient is the same loop over dx: a pixel of dx gathers from the
// pixels of dy that it contributed to. So nothing is scattered, no two threads add to one element,
// and every target is written once, past the caches if it is large. Rows outside the image point to
// zeros, so that the loops need no border checks.

#include <memory>
#include <span>
#include <vector>

#include "conv_kernels.h"
#include "cpu/simd.h"

namespace trainer::cpu {

// Returns the reason why these loops cannot compute `desc`, or "". They support 3 x 3 kernels of
// two axes with one input and one output channel per group, with a stride of 1 or 2 along the width
// and no dilation along the width.
std::string DepthwiseRefuses(const ConvDesc& desc);

inline constexpr int kTaps = 9;  // taps of the kernel, in row-major order

// Relates some neighbouring targets to the sources of their window along the width. The sources are
// x and the targets y in the forward pass; they are dy and dx in the backward pass (kBack).
template <int S, bool kBack>
struct DepthwiseWindow {
  // 7 targets, because images are often 7 * 2^k wide.
  static constexpr int kTargets = kBack && S == 2 ? 8 : 7;
  static constexpr int kSources = kBack ? (kTargets + 1) / S + 1 : (kTargets - 1) * S + 3;

  // Returns the target that source i contributes to through column k of the kernel, or -1.
  static constexpr int TargetOf(int i, int k) {
    const int at = kBack ? S * i + k - 2 : (i - k) / S;
    const bool meets = kBack || (i >= k && (i - k) % S == 0);
    return meets && at >= 0 && at < kTargets ? at : -1;
  }
  // Returns the target at which the first window of a line begins: 0, or -1 for a data gradient
  // with stride 2 and an odd pad, because target + pad must be even. TargetOf is valid relative to
  // this and FirstSource.
  static int64_t FirstTarget(int64_t pad) { return kBack && S == 2 && pad % 2 != 0 ? -1 : 0; }
  // Returns the first source of the window that begins at `target`; it may be outside the line.
  static int64_t FirstSource(int64_t target, int64_t pad) {
    return kBack ? (target + pad - 2) / S : target * S - pad;
  }
  // Returns whether the sources of row r of the kernel were not already read for the previous line.
  static constexpr bool IsNew(int r) { return kBack ? r == 0 : r >= 3 - S; }
};

// The source rows that rows 0, 1 and 2 of the kernel read for a target row, as offsets in elements
// from the image's start; -1 if the row is outside.
struct DepthwiseRows {
  int64_t at[3];
};
// Returns the rows of x for each row of y.
std::vector<DepthwiseRows> ForwardRows(const ConvDesc& desc);
// Returns the rows of dy for each row of dx.
std::vector<DepthwiseRows> BackwardRows(const ConvDesc& desc);

}  // namespace trainer::cpu
