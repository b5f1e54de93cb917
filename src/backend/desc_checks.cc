#include "desc_checks.h"

#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::string_view kAxisNames[] = {"depth", "height", "width"};

// Throws kConfig.
[[noreturn]] void ThrowConfigError(const std::string& message) {
  throw Error(ErrorCode::kConfig, message);
}

// Throws kConfig if `value` is below `least`.
void RequireAtLeast(std::string_view what, int64_t value, int64_t least) {
  if (value < least) ThrowConfigError(Join(what, " is ", value, "; it must be at least ", least));
}

// Returns "depth", "height", "width", or "spatial axis 4".
std::string AxisName(const ConvDesc& desc, size_t axis) {
  if (desc.in.size() > 3) return Join("spatial axis ", axis);
  return std::string(kAxisNames[3 - desc.in.size() + axis]);
}

// Throws kConfig for a value that needs more than 31 bits: oneDNN and cuDNN count along an axis
// with 32-bit integers.
void RequireBelow31Bits(std::string_view what, int64_t value) {
  if (value > INT32_MAX) ThrowConfigError(Join(what, " is ", value, "; it must be below 2^31"));
}

// Throws kConfig if a number of a spatial axis is out of its range.
void CheckAxis(const ConvDesc& desc, size_t axis) {
  const std::string name = AxisName(desc, axis);
  RequireAtLeast(Join("convolution: the input's ", name), desc.in[axis], 1);
  RequireAtLeast(Join("convolution: the kernel's ", name), desc.kernel[axis], 1);
  RequireAtLeast(Join("convolution: the stride along the ", name), desc.stride[axis], 1);
  RequireAtLeast(Join("convolution: the pad along the ", name), desc.pad[axis], 0);
  RequireAtLeast(Join("convolution: the dilation along the ", name), desc.dilation[axis], 1);
}

// Throws kConfig if the kernel is larger than the padded input, so that there is not even one
// output.
void CheckFit(const ConvDesc& desc) {
  const std::vector<int64_t> out = desc.Out();
  for (size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis] >= 1) continue;
    ThrowConfigError(Join("convolution: a kernel of ", desc.kernel[axis], " with dilation ",
                          desc.dilation[axis], " does not fit into a ", AxisName(desc, axis),
                          " of ", desc.in[axis], " padded by ", desc.pad[axis],
                          " on both sides; use a smaller kernel or dilation, or more pad"));
  }
}

}  // namespace

void CheckGemm(const GemmDesc& desc) {
  RequireAtLeast("matrix product: the number of rows", desc.m, 1);
  RequireAtLeast("matrix product: the number of columns", desc.n, 1);
  RequireAtLeast("matrix product: the inner length", desc.k, 1);
  if (desc.accumulate && desc.out_dtype != DType::kF32) {
    ThrowConfigError(Join("matrix product: a sum into ", NameOf(desc.out_dtype),
                          " loses its small terms; accumulate into f32"));
  }
}

void CheckConv(const ConvDesc& desc) {
  const size_t axes = desc.kernel.size();
  if (axes < 1) ThrowConfigError("convolution over no spatial axis; at least 1 is needed");
  if (desc.in.size() != axes || desc.stride.size() != axes || desc.pad.size() != axes ||
      desc.dilation.size() != axes) {
    ThrowConfigError(Join("convolution: input, kernel, stride, pad and dilation have ",
                          desc.in.size(), ", ", axes, ", ", desc.stride.size(), ", ",
                          desc.pad.size(), " and ", desc.dilation.size(),
                          " spatial axes; the numbers must agree"));
  }
  RequireAtLeast("convolution: the batch", desc.batch, 1);
  RequireAtLeast("convolution: the number of input channels", desc.in_channels, 1);
  RequireAtLeast("convolution: the number of outputs", desc.out_channels, 1);
  RequireAtLeast("convolution: the number of groups", desc.group, 1);
  if (desc.in_channels % desc.group != 0 || desc.out_channels % desc.group != 0) {
    ThrowConfigError(Join("convolution: ", desc.group, " groups do not divide ", desc.in_channels,
                          " input channels and ", desc.out_channels, " outputs evenly"));
  }
  for (size_t axis = 0; axis < axes; ++axis) CheckAxis(desc, axis);
  RequireBelow31Bits("convolution: the number of input channels", desc.in_channels);
  RequireBelow31Bits("convolution: the number of outputs", desc.out_channels);
  for (size_t axis = 0; axis < axes; ++axis) {
    RequireBelow31Bits("convolution: the padded length of an axis",
                       desc.in[axis] + 2 * desc.pad[axis]);
    RequireBelow31Bits("convolution: the reach of the kernel",
                       desc.dilation[axis] * desc.kernel[axis]);
  }
  CheckFit(desc);
  RequireBelow31Bits("convolution: the number of weights", desc.WeightShape().Count());
}

void CheckPool(const PoolDesc& desc) {
  RequireAtLeast("pooling: the batch", desc.batch, 1);
  RequireAtLeast("pooling: the number of channels", desc.channels, 1);
  RequireAtLeast("pooling: the input's height", desc.in_h, 1);
  RequireAtLeast("pooling: the input's width", desc.in_w, 1);
  RequireAtLeast("pooling: the output's height", desc.out_h, 1);
  RequireAtLeast("pooling: the output's width", desc.out_w, 1);
  RequireAtLeast("pooling: the kernel's height", desc.kernel_h, 1);
  RequireAtLeast("pooling: the kernel's width", desc.kernel_w, 1);
  RequireAtLeast("pooling: the vertical stride", desc.stride_h, 1);
  RequireAtLeast("pooling: the horizontal stride", desc.stride_w, 1);
  RequireAtLeast("pooling: the vertical pad", desc.pad_h, 0);
  RequireAtLeast("pooling: the horizontal pad", desc.pad_w, 0);
  if (desc.pad_h >= desc.kernel_h || desc.pad_w >= desc.kernel_w) {
    ThrowConfigError(Join("pooling: a pad of ", desc.pad_h, " x ", desc.pad_w, " with a kernel of ",
                          desc.kernel_h, " x ", desc.kernel_w,
                          " makes windows that hold padding only; the pad must be smaller"));
  }
}

void CheckBatchNorm(const BatchNormDesc& desc) {
  RequireAtLeast("batch normalisation: the number of axes", desc.shape.Rank(), 2);
  if (!(desc.eps >= 0)) {
    ThrowConfigError(Join("batch normalisation: eps is ", desc.eps, "; it must not be negative"));
  }
  if (desc.backward_from_output && (desc.other || desc.relu)) {
    ThrowConfigError("batch normalisation: with a sum or a ReLU after it, x cannot be told from y");
  }
}

void CheckLrn(const LrnDesc& desc) {
  if (!desc.shape.IsImage()) {
    ThrowConfigError(
        Join("LRN: the shape is ", desc.shape.ToString(), "; it must be (N, C, H, W)"));
  }
  RequireAtLeast("LRN: the number of neighbours on a side", desc.half, 0);
}

void CheckSoftmax(const SoftmaxDesc& desc) {
  if (desc.axis >= 0 && desc.axis < desc.shape.Rank()) return;
  ThrowConfigError(
      Join("softmax: axis ", desc.axis, " of a shape of ", desc.shape.Rank(), " axes"));
}

void CheckAttention(const AttentionDesc& desc) {
  RequireAtLeast("attention: the batch", desc.batch, 1);
  RequireAtLeast("attention: the length", desc.length, 1);
  RequireAtLeast("attention: the number of heads", desc.heads, 1);
  RequireAtLeast("attention: the size of a head", desc.size, 1);
}

void ExpectPlanned(std::string_view what, const Shape& shape, DType dtype,
                   const ConstTensor& tensor) {
  if (tensor.shape == shape && tensor.dtype == dtype) return;
  throw Error(ErrorCode::kInternal,
              Join(what, " planned for ", shape.ToString(), " ", NameOf(dtype), " got ",
                   tensor.shape.ToString(), " ", NameOf(tensor.dtype)));
}

}  // namespace trainer
