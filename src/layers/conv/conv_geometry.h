#pragma once

#include "trainer/backend/primitives/conv.h"
#include "trainer/layers/layer.h"

namespace trainer {

// A convolution's description for a layer's tensors (lead..., C, spatial...). The lead axes, those
// before `axis`, are merged into one batch; no spatial axis counts as one of length 1.
struct ConvGeometry {
  ConvDesc desc;
  Shape input;
  int axis = 1;  // of the channels, from the front

  bool HasSpatial() const { return axis + 1 < input.Rank(); }
  // The layer's shape for `merged`, a shape (batch, channels, spatial...).
  Shape LayerShape(const Shape& merged) const;
  // The weight's shape in files.
  Shape WeightShape() const;
};

// What convolution_param says for an input: kernel, stride, pad and dilation per spatial axis (once
// for all, once per axis, or by the _h and _w fields for images), group and channels.
// `out_channels` and `bias` are not read. Refuses, at the field's line: a wrong number of values,
// both forms at once, a kernel, stride or dilation of 0, an axis that the input has not.
ConvGeometry ReadConvGeometry(const LayerSpec& spec, const Shape& input, DType dtype);

// num_output, refused when it is 0.
int64_t ReadNumOutput(const LayerSpec& spec);

// Refuses a group that does not divide `channels`; `what` names those ("input channels").
void RequireGroup(const LayerSpec& spec, int64_t group, int64_t channels, const char* what);

// Refuses a kernel that does not fit into the padded input.
void RequireFit(const LayerSpec& spec, const ConvDesc& desc);

// "5" or "5x3"
std::string SizeText(const std::vector<int64_t>& sizes);

}  // namespace trainer
