#pragma once

#include "trainer/backend/primitives/conv.h"
#include "trainer/layers/layer.h"

namespace trainer {

// A convolution's description for a layer's tensors (lead..., C, spatial...). The lead axes, which
// precede `axis`, are merged into one batch. Without spatial axes, the description has one of
// length 1.
struct ConvGeometry {
  ConvDesc desc;
  Shape input;
  int axis = 1;  // the channels' axis, counted from the front

  bool HasSpatial() const { return axis + 1 < input.Rank(); }
  // Returns the layer's shape for `merged`, a shape (batch, channels, spatial...).
  Shape LayerShape(const Shape& merged) const;
  // Returns the weight's shape in files.
  Shape WeightShape() const;
};

// Reads convolution_param for an input: kernel, stride, pad and dilation per spatial axis (once for
// all, once per axis, or by the _h and _w fields for images), group and channels. Does not read
// `out_channels` and `bias`. Throws kConfig at the field's line for a wrong number of values, both
// forms at once, a kernel, stride or dilation of 0, or an axis that the input does not have.
ConvGeometry ReadConvGeometry(const LayerSpec& spec, const Shape& input, DType dtype);

// Returns num_output. Throws kConfig if it is missing, 0, or beyond 31 bits.
int64_t ReadNumOutput(const LayerSpec& spec);

// Throws kConfig if `group` is 0 or does not divide `channels`; `what` names the channels in
// messages ("input channels").
void RequireGroup(const LayerSpec& spec, int64_t group, int64_t channels, const char* what);

// Throws kConfig if the kernel, spread by its dilation, does not fit into the padded input.
void RequireFit(const LayerSpec& spec, const ConvDesc& desc);

// Formats sizes for messages: "5" or "5x3".
std::string SizeText(const std::vector<int64_t>& sizes);

}  // namespace trainer
