#include "trainer/backend/primitives/conv.h"

namespace trainer {

std::vector<int64_t> ConvDesc::Out() const {
  std::vector<int64_t> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t room = in[i] + 2 * pad[i] - dilation[i] * (kernel[i] - 1) - 1;
    out[i] = room < 0 ? 0 : room / stride[i] + 1;
  }
  return out;
}

Shape ConvDesc::InShape() const {
  std::vector<int64_t> dims = {batch, in_channels};
  dims.insert(dims.end(), in.begin(), in.end());
  return Shape(dims);
}

Shape ConvDesc::WeightShape() const {
  std::vector<int64_t> dims = {out_channels, in_channels / group};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return Shape(dims);
}

Shape ConvDesc::OutShape() const {
  std::vector<int64_t> dims = {batch, out_channels};
  const std::vector<int64_t> out = Out();
  dims.insert(dims.end(), out.begin(), out.end());
  return Shape(dims);
}

int64_t ConvDesc::Macs() const { return OutShape().Count() * WeightShape().Count(1); }

}  // namespace trainer
