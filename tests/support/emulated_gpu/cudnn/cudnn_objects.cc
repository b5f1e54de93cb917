// Handles and descriptors of the emulated cuDNN.

#include "support/emulated_gpu/cudnn/cudnn_objects.h"

#include <cstdio>
#include <memory>

#include "support/emulated_gpu/library.h"
#include "support/emulated_gpu/stream.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;
constexpr int kNullPointer = 2002, kShapeMismatch = 2008, kUnsupportedShape = 3002,
              kUnsupportedType = 3003, kUnsupportedLayout = 3004, kUnsupportedArch = 3007;

thread_local std::string last_error;

template <class T>
Objects<T>& All() {
  static auto* const objects = new Objects<T>;
  return *objects;
}

LibraryCall Begin(const char* name) {
  return LibraryCall(name, cudnn::kNotSupported, cudnn::kExecutionFailed);
}

size_t GetVersion() { return TheOptions().cudnn_version; }

const char* GetErrorString(int status) {
  if (status == cudnn::kSuccess) return "CUDNN_STATUS_SUCCESS";
  switch (cudnn::CategoryOf(status)) {
    case cudnn::kBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case cudnn::kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case cudnn::kInternalError:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case cudnn::kExecutionFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_NOT_INITIALIZED";
  }
}

void GetLastErrorString(char* message, size_t bytes) {
  if (bytes > 0) std::snprintf(message, bytes, "%s", last_error.c_str());
  last_error.clear();
}

template <class T>
int Create(T** object) {
  const LibraryCall call = Begin("cudnnCreate");
  *object = call.status() == 0 ? All<T>().Make() : nullptr;
  return call.status();
}

// Destroys an object even if the device is broken.
template <class T>
int Destroy(T* object) {
  const LibraryCall call = Begin("cudnnDestroy");
  if (All<T>().Destroy(object)) return call.status();
  AddProblem("cudnnDestroy... of what the library did not make, or of what is destroyed");
  return cudnn::kBadParam;
}

int CreateHandle(CudnnTable::Handle* handle) {
  const int status = Create(handle);
  if (status == 0) (*handle)->device = CurrentDevice();
  return status;
}

int SetStream(CudnnTable::Handle handle, trainer::cuda::Stream stream) {
  const LibraryCall call = Begin("cudnnSetStream");
  if (call.status() != 0) return call.status();
  if (!IsLive(handle)) return Refuse(cudnn::kBadParam, "cudnnSetStream: no such handle");
  if (CheckStream(stream, "cudnnSetStream") != 0 || stream->device != handle->device) {
    return Refuse(cudnn::kBadParam, "cudnnSetStream: no such stream of the handle's device");
  }
  handle->stream = stream;
  return 0;
}

// Sets a tensor or a filter: both have the same members.
template <class T>
int SetNd(T* object, const char* call_name, int format, int type, int axes, const int* dims) {
  const LibraryCall call = Begin(call_name);
  if (call.status() != 0) return call.status();
  if (!All<T>().Has(object) || dims == nullptr) return Refuse(kNullPointer, call_name);
  if (axes < 3 || axes > 8 || (format != cudnn::kNchw && format != cudnn::kNhwc)) {
    return Refuse(cudnn::kNotSupported, Join(call_name, ": ", axes, " axes, format ", format));
  }
  int64_t count = 1;
  for (int i = 0; i < axes; ++i) {
    if (dims[i] < 1) return Refuse(cudnn::kBadParam, Join(call_name, ": a length of ", dims[i]));
    count *= dims[i];
    if (count > INT32_MAX) {
      return Refuse(cudnn::kNotSupported, Join(call_name, ": 2^31 elements or more"));
    }
  }
  *object = {format, type, {dims, dims + axes}};
  return 0;
}

int SetTensor(CudnnTable::Tensor tensor, int format, int type, int axes, const int* dims) {
  return SetNd(tensor, "cudnnSetTensorNdDescriptorEx", format, type, axes, dims);
}
int SetFilter(CudnnTable::Filter filter, int type, int format, int axes, const int* dims) {
  return SetNd(filter, "cudnnSetFilterNdDescriptor", format, type, axes, dims);
}

int SetConvolution(CudnnTable::Convolution conv, int axes, const int* pad, const int* stride,
                   const int* dilation, int mode, int compute_type) {
  const LibraryCall call = Begin("cudnnSetConvolutionNdDescriptor");
  if (call.status() != 0) return call.status();
  if (!All<cudnn::ConvolutionDesc>().Has(conv)) {
    return Refuse(kNullPointer, "cudnnSetConvolutionNdDescriptor");
  }
  if (axes < 1 || axes > 6 || mode != cudnn::kCrossCorrelation) {
    return Refuse(cudnn::kNotSupported, Join(axes, " spatial axes, mode ", mode));
  }
  for (int i = 0; i < axes; ++i) {
    if (pad[i] < 0 || stride[i] < 1 || dilation[i] < 1) {
      return Refuse(cudnn::kBadParam,
                    Join("padding ", pad[i], ", stride ", stride[i], ", dilation ", dilation[i]));
    }
  }
  conv->pad = {pad, pad + axes};
  conv->stride = {stride, stride + axes};
  conv->dilation = {dilation, dilation + axes};
  conv->compute_type = compute_type;
  return 0;
}

int SetGroups(CudnnTable::Convolution conv, int groups) {
  const LibraryCall call = Begin("cudnnSetConvolutionGroupCount");
  if (call.status() != 0) return call.status();
  if (!All<cudnn::ConvolutionDesc>().Has(conv) || groups < 1) {
    return Refuse(cudnn::kBadParam, Join("cudnnSetConvolutionGroupCount: ", groups));
  }
  conv->groups = groups;
  return 0;
}

int SetMath(CudnnTable::Convolution conv, int math_type) {
  const LibraryCall call = Begin("cudnnSetConvolutionMathType");
  if (call.status() != 0) return call.status();
  if (!All<cudnn::ConvolutionDesc>().Has(conv) || math_type < 0 || math_type > 3) {
    return Refuse(cudnn::kBadParam, Join("cudnnSetConvolutionMathType: ", math_type));
  }
  conv->math_type = math_type;
  return 0;
}

int SetActivation(CudnnTable::Activation activation, int mode, int nan, double) {
  const LibraryCall call = Begin("cudnnSetActivationDescriptor");
  if (call.status() != 0) return call.status();
  if (!IsLive(activation)) return Refuse(kNullPointer, "cudnnSetActivationDescriptor");
  activation->mode = mode;
  activation->nan = nan;
  return 0;
}

// Writes the spatial lengths to `to`, the last axis last. Returns 0, or the status if they do not
// fit together.
int Lengths(const cudnn::TensorDesc& x, const cudnn::FilterDesc& w,
            const cudnn::ConvolutionDesc& conv, const cudnn::TensorDesc& y, Convolution* to) {
  for (int axis = 0; axis < 3; ++axis) {
    to->in[axis] = to->out[axis] = to->kernel[axis] = to->stride[axis] = to->dilation[axis] = 1;
    to->pad[axis] = 0;
  }
  const size_t axes = conv.pad.size();
  for (size_t a = 0; a < axes; ++a) {
    const size_t axis = 3 - axes + a;
    to->in[axis] = x.dims[2 + a];
    to->out[axis] = y.dims[2 + a];
    to->kernel[axis] = w.dims[2 + a];
    to->pad[axis] = conv.pad[a];
    to->stride[axis] = conv.stride[a];
    to->dilation[axis] = conv.dilation[a];
    const int64_t reach =
        to->in[axis] + 2 * to->pad[axis] - to->dilation[axis] * (to->kernel[axis] - 1) - 1;
    if (reach < 0 || reach / to->stride[axis] + 1 != to->out[axis]) {
      return Refuse(kUnsupportedShape,
                    Join("spatial axis ", a, " of the output has a length of ", to->out[axis]));
    }
  }
  return 0;
}

int CheckTypes(CudnnTable::Handle handle, const cudnn::TensorDesc& x, const cudnn::FilterDesc& w,
               const cudnn::ConvolutionDesc& conv, const cudnn::TensorDesc& y) {
  if (x.type != w.type || x.type != y.type) {
    return Refuse(cudnn::kBadParam, "tensors and weights of more than one data type");
  }
  if (conv.compute_type != cudnn::kDataFloat ||
      (x.type != cudnn::kDataFloat && x.type != cudnn::kDataHalf &&
       x.type != cudnn::kDataBFloat16)) {
    return Refuse(kUnsupportedType,
                  Join("data type ", x.type, ", computed as ", conv.compute_type));
  }
  const DeviceOptions& gpu = OptionsOf(handle->device);
  if (x.type == cudnn::kDataBFloat16 && gpu.major < 8) {
    return Refuse(kUnsupportedArch, "bfloat16 needs compute capability 8.0");
  }
  if (x.format != w.format || x.format != y.format) {
    return Refuse(kUnsupportedLayout, "tensors and weights of more than one format");
  }
  return 0;
}

}  // namespace

int Refuse(int status, const std::string& sentence) {
  last_error = sentence;
  return status;
}

bool IsLive(CudnnTable::Handle handle) { return All<cudnn::Context>().Has(handle); }
bool IsLive(CudnnTable::Activation activation) {
  return All<cudnn::ActivationDesc>().Has(activation);
}

int Describe(Direction direction, CudnnTable::Handle handle, CudnnTable::Tensor x,
             CudnnTable::Filter w, CudnnTable::Convolution conv, CudnnTable::Tensor y,
             Convolution* described) {
  if (!IsLive(handle)) return Refuse(cudnn::kNotInitialized, "no such handle");
  if (!IsCurrent(handle->device, "cuDNN")) {
    return Refuse(cudnn::kExecutionFailed, "another device than the handle's is in use");
  }
  const auto& tensors = All<cudnn::TensorDesc>();
  if (!tensors.Has(x) || !tensors.Has(y) || !All<cudnn::FilterDesc>().Has(w) ||
      !All<cudnn::ConvolutionDesc>().Has(conv)) {
    return Refuse(kNullPointer, "no such descriptor");
  }
  const size_t axes = x->dims.size();
  if (axes != y->dims.size() || axes != w->dims.size() || axes != conv->pad.size() + 2) {
    return Refuse(cudnn::kBadParam, "descriptors of unlike numbers of axes");
  }
  if (axes != 4 && axes != 5) return Refuse(cudnn::kNotSupported, Join(axes, " axes"));
  if (const int status = CheckTypes(handle, *x, *w, *conv, *y)) return status;
  Convolution& c = *described;
  c = {};
  c.direction = direction;
  c.type = x->type == cudnn::kDataFloat  ? trainer::DType::kF32
           : x->type == cudnn::kDataHalf ? trainer::DType::kF16
                                         : trainer::DType::kBF16;
  c.nhwc = x->format == cudnn::kNhwc;
  c.axes = static_cast<int>(axes) - 2;
  c.math_type = conv->math_type;
  const DeviceOptions& gpu = OptionsOf(handle->device);
  c.tf32 = c.type == trainer::DType::kF32 && c.math_type != cudnn::kFmaMath && gpu.major >= 8;
  c.batch = x->dims[0];
  c.channels = x->dims[1];
  c.filters = w->dims[0];
  c.groups = conv->groups;
  if (c.channels != w->dims[1] * c.groups || c.filters % c.groups != 0 || y->dims[0] != c.batch ||
      y->dims[1] != c.filters) {
    return Refuse(kShapeMismatch, "numbers of images, channels, filters or groups do not fit");
  }
  return Lengths(*x, *w, *conv, *y, described);
}

void FillObjectCalls(CudnnTable* table) {
  table->GetVersion = GetVersion;
  table->GetErrorString = GetErrorString;
  table->GetLastErrorString = GetLastErrorString;
  table->Create = CreateHandle;
  table->Destroy = Destroy<cudnn::Context>;
  table->SetStream = SetStream;
  table->CreateTensorDescriptor = Create<cudnn::TensorDesc>;
  table->DestroyTensorDescriptor = Destroy<cudnn::TensorDesc>;
  table->SetTensorNdDescriptorEx = SetTensor;
  table->CreateFilterDescriptor = Create<cudnn::FilterDesc>;
  table->DestroyFilterDescriptor = Destroy<cudnn::FilterDesc>;
  table->SetFilterNdDescriptor = SetFilter;
  table->CreateConvolutionDescriptor = Create<cudnn::ConvolutionDesc>;
  table->DestroyConvolutionDescriptor = Destroy<cudnn::ConvolutionDesc>;
  table->SetConvolutionNdDescriptor = SetConvolution;
  table->SetConvolutionGroupCount = SetGroups;
  table->SetConvolutionMathType = SetMath;
  table->CreateActivationDescriptor = Create<cudnn::ActivationDesc>;
  table->DestroyActivationDescriptor = Destroy<cudnn::ActivationDesc>;
  table->SetActivationDescriptor = SetActivation;
}

}  // namespace emulated_gpu
