#pragma once
// Convolutions of images with 1 x 1 kernels in our own AVX2 loops, for what the library computes
// slowly: with AVX2 its weight gradient reaches 15 to 45 % of the processor's speed, and it has no
// compiled code for bf16. With AVX-512 the library is fast.
//
// The forward pass and the data gradient, in bf16 only, convert blocks of pixels to floats, which
// stay in the second-level cache, and multiply them by panels of the weight, which stay in the
// first (the paper that blocked_product.h names). The weight gradient is a BlockedProduct.

#include <cstdint>
#include <string>

#include "conv_kernels.h"

namespace trainer::cpu {

// Returns whether it is an image convolution with a 1 x 1 kernel, one group and no padding, with
// any stride.
bool IsPointwise(const ConvDesc& desc);

// The pixels of x that a 1 x 1 kernel reads, in the order of y.
struct ReadPixels {
  explicit ReadPixels(const ConvDesc& desc)
      : batch(desc.batch),
        oh(desc.Out()[0]),
        ow(desc.Out()[1]),
        h(desc.in[0]),
        w(desc.in[1]),
        sh(desc.stride[0]),
        sw(desc.stride[1]),
        count(batch * oh * ow) {}

  bool HasStride() const { return sh != 1 || sw != 1; }
  // Returns the index in x of pixel p of y.
  int64_t At(int64_t p) const {
    if (!HasStride()) return p;
    const int64_t line = p / ow;
    return (line / oh * h + line % oh * sh) * w + p % ow * sw;
  }

  int64_t batch, oh, ow, h, w, sh, sw, count;
};

// Returns the reason why these loops cannot compute `desc` or are slower, or "".
std::string OwnPointwiseRefuses(const ConvDesc& desc);

// Makes the kernel of the data gradient. It needs bf16, a stride of 1 and what OwnPointwiseRefuses
// asks for.
KernelOrReason<ConvBackwardData> OwnPointwiseDataOf(const ConvDesc& desc);

}  // namespace trainer::cpu
