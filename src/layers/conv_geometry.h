#pragma once

#include "trainer/backend/conv.h"
#include "trainer/layers/layer.h"

namespace trainer {

// What convolution_param says for an input of shape (N, C, spatial...): kernel, stride, pad and
// dilation per spatial axis (once for all, once per axis, or by the _h and _w fields for images),
// group and channels. `out_channels` and `bias` are not read. Refuses, at the field's line: a wrong
// number of values, both forms at once, a kernel, stride or dilation of 0, an axis that is not 1,
// an input that has not 3 to 5 axes.
ConvDesc ReadConvGeometry(const LayerSpec& spec, const Shape& input, DType dtype);

// num_output, refused when it is 0.
int64_t ReadNumOutput(const LayerSpec& spec);

// Refuses a group that does not divide `channels`; `what` names those ("input channels").
void RequireGroup(const LayerSpec& spec, int64_t group, int64_t channels, const char* what);

// Refuses a kernel that does not fit into the padded input.
void RequireFit(const LayerSpec& spec, const ConvDesc& desc);

// "5" or "5x3"
std::string SizeText(const std::vector<int64_t>& sizes);

}  // namespace trainer
