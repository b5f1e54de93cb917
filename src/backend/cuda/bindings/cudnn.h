#pragma once
// The cuDNN 9 calls that the backend uses, as a table of functions. It is filled from the library
// that libraries.cc opens or by the emulated GPU of the tests. Names, semantics and values follow
// cuDNN's descriptor API, without the prefixes cudnn and CUDNN_; enums are passed as int. Users
// need no cuDNN headers; constants_check_linked.cc compares the values with them.

#include <cstddef>

#include "cuda/bindings/runtime.h"

namespace trainer::cuda {
namespace cudnn {

// cudnnStatus_t. The thousands give the category of a status: see CategoryOf.
inline constexpr int kSuccess = 0, kNotInitialized = 1001, kBadParam = 2000, kNotSupported = 3000,
                     kInternalError = 4000, kHostAllocationFailed = 4003,
                     kDeviceAllocationFailed = 4004, kExecutionFailed = 5000;
// Returns the category of a status: kInternalError for kDeviceAllocationFailed.
inline constexpr int CategoryOf(int status) { return status / 1000 * 1000; }
// cudnnDataType_t
inline constexpr int kDataFloat = 0, kDataHalf = 2, kDataBFloat16 = 9;
// cudnnTensorFormat_t: the order in memory. Dimensions are always given as (N, C, spatial...), and
// for filters as (M, C / group, kernel...).
inline constexpr int kNchw = 0, kNhwc = 1;
// cudnnConvolutionMode_t
inline constexpr int kCrossCorrelation = 1;
// cudnnMathType_t. kDefaultMath may round f32 to TF32, kFmaMath may not.
inline constexpr int kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3;
// cudnnDeterminism_t
inline constexpr int kNonDeterministic = 0, kDeterministic = 1;
// cudnnActivationMode_t, cudnnNanPropagation_t
inline constexpr int kActivationRelu = 1, kActivationIdentity = 5;
inline constexpr int kNotPropagateNan = 0, kPropagateNan = 1;
// cudnnConvolutionFwdAlgo_t: the only algorithm that adds a bias without an activation
inline constexpr int kForwardImplicitPrecompGemm = 1;

struct Context;
struct TensorDesc;
struct FilterDesc;
struct ConvolutionDesc;
struct ActivationDesc;
using Handle = Context*;

// cudnnConvolutionFwdAlgoPerf_t, ...BwdDataAlgoPerf_t and ...BwdFilterAlgoPerf_t, which have the
// same layout.
struct AlgoPerf {
  int algo;
  int status;  // kSuccess if the rest is valid
  float time;  // milliseconds, or -1
  size_t memory;
  int determinism;
  int math_type;
  int reserved[3];
};

}  // namespace cudnn

// The three directions of a convolution. In each, the arguments of
//   GetAlgorithm (the heuristics, best first), FindAlgorithm (measures; overwrites the result),
//   WorkspaceSize and Run
// name two inputs and a result: forward x, w -> y; data w, dy -> dx; filter x, dy -> dw.
struct Cudnn {
  using Handle = cudnn::Handle;
  using Tensor = cudnn::TensorDesc*;
  using Filter = cudnn::FilterDesc*;
  using Convolution = cudnn::ConvolutionDesc*;
  using Activation = cudnn::ActivationDesc*;

  size_t (*GetVersion)();  // 10000 * major + 100 * minor + patch: 91900
  const char* (*GetErrorString)(int status);
  // Describes the last failure in this thread, null-terminated and truncated to `bytes`.
  void (*GetLastErrorString)(char* message, size_t bytes);
  int (*Create)(Handle* handle);
  int (*Destroy)(Handle handle);
  int (*SetStream)(Handle handle, Stream stream);

  int (*CreateTensorDescriptor)(Tensor* tensor);
  int (*DestroyTensorDescriptor)(Tensor tensor);
  int (*SetTensorNdDescriptorEx)(Tensor tensor, int format, int type, int axes, const int* dims);
  int (*CreateFilterDescriptor)(Filter* filter);
  int (*DestroyFilterDescriptor)(Filter filter);
  int (*SetFilterNdDescriptor)(Filter filter, int type, int format, int axes, const int* dims);
  int (*CreateConvolutionDescriptor)(Convolution* conv);
  int (*DestroyConvolutionDescriptor)(Convolution conv);
  int (*SetConvolutionNdDescriptor)(Convolution conv, int spatial_axes, const int* pad,
                                    const int* stride, const int* dilation, int mode,
                                    int compute_type);
  int (*SetConvolutionGroupCount)(Convolution conv, int groups);
  int (*SetConvolutionMathType)(Convolution conv, int math_type);
  int (*CreateActivationDescriptor)(Activation* activation);
  int (*DestroyActivationDescriptor)(Activation activation);
  int (*SetActivationDescriptor)(Activation activation, int mode, int nan, double coefficient);

  int (*GetConvolutionForwardAlgorithm_v7)(Handle handle, Tensor x, Filter w, Convolution conv,
                                           Tensor y, int requested, int* returned,
                                           cudnn::AlgoPerf* results);
  int (*FindConvolutionForwardAlgorithmEx)(Handle handle, Tensor x, const void* x_data, Filter w,
                                           const void* w_data, Convolution conv, Tensor y,
                                           void* y_data, int requested, int* returned,
                                           cudnn::AlgoPerf* results, void* workspace,
                                           size_t workspace_bytes);
  int (*GetConvolutionForwardWorkspaceSize)(Handle handle, Tensor x, Filter w, Convolution conv,
                                            Tensor y, int algo, size_t* bytes);
  // alpha and beta, here and below, are floats in host memory: result = alpha * op + beta * result.
  int (*ConvolutionForward)(Handle handle, const void* alpha, Tensor x, const void* x_data,
                            Filter w, const void* w_data, Convolution conv, int algo,
                            void* workspace, size_t workspace_bytes, const void* beta, Tensor y,
                            void* y_data);
  // Computes y = activation(alpha1 * conv(x) + alpha2 * z + bias).
  int (*ConvolutionBiasActivationForward)(Handle handle, const void* alpha1, Tensor x,
                                          const void* x_data, Filter w, const void* w_data,
                                          Convolution conv, int algo, void* workspace,
                                          size_t workspace_bytes, const void* alpha2, Tensor z,
                                          const void* z_data, Tensor bias, const void* bias_data,
                                          Activation activation, Tensor y, void* y_data);

  int (*GetConvolutionBackwardDataAlgorithm_v7)(Handle handle, Filter w, Tensor dy,
                                                Convolution conv, Tensor dx, int requested,
                                                int* returned, cudnn::AlgoPerf* results);
  int (*FindConvolutionBackwardDataAlgorithmEx)(Handle handle, Filter w, const void* w_data,
                                                Tensor dy, const void* dy_data, Convolution conv,
                                                Tensor dx, void* dx_data, int requested,
                                                int* returned, cudnn::AlgoPerf* results,
                                                void* workspace, size_t workspace_bytes);
  int (*GetConvolutionBackwardDataWorkspaceSize)(Handle handle, Filter w, Tensor dy,
                                                 Convolution conv, Tensor dx, int algo,
                                                 size_t* bytes);
  int (*ConvolutionBackwardData)(Handle handle, const void* alpha, Filter w, const void* w_data,
                                 Tensor dy, const void* dy_data, Convolution conv, int algo,
                                 void* workspace, size_t workspace_bytes, const void* beta,
                                 Tensor dx, void* dx_data);

  int (*GetConvolutionBackwardFilterAlgorithm_v7)(Handle handle, Tensor x, Tensor dy,
                                                  Convolution conv, Filter dw, int requested,
                                                  int* returned, cudnn::AlgoPerf* results);
  int (*FindConvolutionBackwardFilterAlgorithmEx)(Handle handle, Tensor x, const void* x_data,
                                                  Tensor dy, const void* dy_data, Convolution conv,
                                                  Filter dw, void* dw_data, int requested,
                                                  int* returned, cudnn::AlgoPerf* results,
                                                  void* workspace, size_t workspace_bytes);
  int (*GetConvolutionBackwardFilterWorkspaceSize)(Handle handle, Tensor x, Tensor dy,
                                                   Convolution conv, Filter dw, int algo,
                                                   size_t* bytes);
  int (*ConvolutionBackwardFilter)(Handle handle, const void* alpha, Tensor x, const void* x_data,
                                   Tensor dy, const void* dy_data, Convolution conv, int algo,
                                   void* workspace, size_t workspace_bytes, const void* beta,
                                   Filter dw, void* dw_data);
};

// Returns the table of cuDNN; null while the library is not open: see OpenLibraries().
const Cudnn* GetCudnn();
// Sets the table in tests, instead of a library; null: not available.
void SetCudnn(const Cudnn* table);

}  // namespace trainer::cuda
