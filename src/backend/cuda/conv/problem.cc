#include "cuda/conv/problem.h"

#include <limits>

#include "cuda/bindings/library_types.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

using Ints = std::vector<int>;
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

// Returns one value per spatial axis of the library, with `fill` for the axis that a
// one-dimensional convolution lacks.
Ints Spatial(const std::vector<int64_t>& ours, int fill) {
  Ints axes(ours.begin(), ours.end());
  if (axes.size() == 1) axes.insert(axes.begin(), fill);
  return axes;
}

// Returns (outer, channels, spatial...).
Ints With(int64_t outer, int64_t channels, const Ints& spatial) {
  Ints dims = {static_cast<int>(outer), static_cast<int>(channels)};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

// Describes a tensor to the library.
void SetTensor(Cudnn::Tensor tensor, int format, DType type, const Ints& dims) {
  CheckCudnn(GetCudnn()->SetTensorNdDescriptorEx(tensor, format, CudnnTypeOf(type),
                                                 static_cast<int>(dims.size()), dims.data()),
             "describing a tensor (cudnnSetTensorNdDescriptorEx)");
}

}  // namespace

std::string ConvProblem::WhyNot(const CudaDevice& device, const ConvDesc& desc) {
  if (device.CudnnHandle() == nullptr) return "the library was not found";
  if (desc.in.size() > 3) return Join("it supports up to 3 spatial axes, not ", desc.in.size());
  for (const Shape& shape : {desc.InShape(), desc.OutShape(), desc.WeightShape()}) {
    if (shape.Count() > kMaxInt) {
      return Join("it supports tensors of up to ", kMaxInt, " elements, not ", shape.Count());
    }
  }
  for (const auto* lengths : {&desc.pad, &desc.stride, &desc.dilation}) {
    for (const int64_t length : *lengths) {
      if (length > kMaxInt) return Join("it does not support a length of ", length);
    }
  }
  return "";
}

ConvProblem::ConvProblem(const CudaDevice& device, const ConvDesc& desc)
    : device_(device),
      desc_(desc),
      x_(&Cudnn::CreateTensorDescriptor, &Cudnn::DestroyTensorDescriptor),
      y_(&Cudnn::CreateTensorDescriptor, &Cudnn::DestroyTensorDescriptor),
      bias_(&Cudnn::CreateTensorDescriptor, &Cudnn::DestroyTensorDescriptor),
      filter_(&Cudnn::CreateFilterDescriptor, &Cudnn::DestroyFilterDescriptor),
      conv_(&Cudnn::CreateConvolutionDescriptor, &Cudnn::DestroyConvolutionDescriptor) {
  const Cudnn& dnn = *GetCudnn();
  const bool image = desc.in.size() == 2;
  const int format = image ? cudnn::kNhwc : cudnn::kNchw;
  order_ = {.filters = desc.out_channels,
            .channels = desc.in_channels / desc.group,
            .taps = desc.WeightShape().Count(2),
            .channels_innermost = image,
            .dtype = desc.dtype};
  SetTensor(x_, format, desc.dtype, With(desc.batch, desc.in_channels, Spatial(desc.in, 1)));
  SetTensor(y_, format, desc.dtype, With(desc.batch, desc.out_channels, Spatial(desc.Out(), 1)));
  const Ints kernel = Spatial(desc.kernel, 1);
  SetTensor(bias_, format, desc.dtype, With(1, desc.out_channels, Ints(kernel.size(), 1)));
  const Ints filter = With(desc.out_channels, order_.channels, kernel);
  CheckCudnn(dnn.SetFilterNdDescriptor(filter_, CudnnTypeOf(desc.dtype), format,
                                       static_cast<int>(filter.size()), filter.data()),
             "describing weights (cudnnSetFilterNdDescriptor)");
  const Ints pad = Spatial(desc.pad, 0), stride = Spatial(desc.stride, 1);
  const Ints dilation = Spatial(desc.dilation, 1);
  CheckCudnn(
      dnn.SetConvolutionNdDescriptor(conv_, static_cast<int>(pad.size()), pad.data(), stride.data(),
                                     dilation.data(), cudnn::kCrossCorrelation, cudnn::kDataFloat),
      "describing a convolution (cudnnSetConvolutionNdDescriptor)");
  CheckCudnn(dnn.SetConvolutionGroupCount(conv_, static_cast<int>(desc.group)),
             "describing a convolution (cudnnSetConvolutionGroupCount)");
  SetFirstMath();
}

void ConvProblem::SetMath(int math_type) {
  CheckCudnn(GetCudnn()->SetConvolutionMathType(conv_, math_type),
             "describing a convolution (cudnnSetConvolutionMathType)");
}

void ConvProblem::SetFirstMath() {
  SetMath(desc_.dtype == DType::kF32 ? AllowedMath(cudnn::kDefaultMath) : cudnn::kTensorOpMath);
}

int ConvProblem::AllowedMath(int math_type) const {
  return desc_.dtype == DType::kF32 && !device_.options().tf32 ? cudnn::kFmaMath : math_type;
}

std::string ConvProblem::Key(const char* direction) const {
  std::string key = Join(direction, ' ', desc_.InShape().ToString(), desc_.WeightShape().ToString(),
                         ' ', desc_.group, ' ', desc_.bias, desc_.relu, NameOf(desc_.dtype));
  for (const auto* lengths : {&desc_.pad, &desc_.stride, &desc_.dilation}) {
    for (const int64_t length : *lengths) key += Join(' ', length);
  }
  return key;
}

void ExpectAligned(const void* data) {
  if (IsAligned(data)) return;
  throw Error(ErrorCode::kInternal,
              Join("cuDNN needs tensors at addresses that ", kVectorBytes, " divides"));
}

}  // namespace trainer::cuda
