// Compares the values and signatures that runtime.h, cublas_lt.h, cudnn.h and nccl.h declare with
// NVIDIA's headers. Compiled if CUDA is available; nothing in it runs.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <type_traits>

#include "cuda/bindings/cublas_lt.h"
#include "cuda/bindings/cudnn.h"
#include "cuda/bindings/nccl.h"
#include "cuda/bindings/runtime.h"

// The legacy calls of cuDNN 9 are marked as deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define TRAINER_HAS_CUDNN_HEADER 1
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#define TRAINER_HAS_NCCL_HEADER 1
#endif

namespace trainer::cuda {
namespace {

// Returns whether arguments of the two types are passed in the same way.
template <class A, class B>
consteval bool Alike() {
  if (std::is_same_v<A, B> || (std::is_pointer_v<A> && std::is_pointer_v<B>)) return true;
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return false;
  } else {
    // Structures of plain bytes, passed by value.
    constexpr bool kStructs = std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B) &&
                              std::is_trivially_copyable_v<A> && std::is_trivially_copyable_v<B>;
    constexpr bool kNumbers =
        (std::is_enum_v<A> || std::is_integral_v<A>)&&(std::is_enum_v<B> || std::is_integral_v<B>);
    return kStructs || (kNumbers && sizeof(A) == sizeof(B));
  }
}

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R (*)(A...), S (*)(B...)>
    : std::bool_constant<Alike<R, S>() && (Alike<A, B>() && ...)> {
};

#define SAME_CALL(table, prefix, name)                                                    \
  static_assert(                                                                          \
      SameCall<decltype(table::name), std::add_pointer_t<decltype(prefix##name)>>::value, \
      #prefix #name " has other arguments")
#define SAME_NUMBER(ours, theirs) \
  static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #theirs " differs")

SAME_NUMBER(kSuccess, cudaSuccess);
SAME_NUMBER(kErrorInvalidValue, cudaErrorInvalidValue);
SAME_NUMBER(kErrorMemoryAllocation, cudaErrorMemoryAllocation);
SAME_NUMBER(kErrorInitializationError, cudaErrorInitializationError);
SAME_NUMBER(kErrorInvalidConfiguration, cudaErrorInvalidConfiguration);
SAME_NUMBER(kErrorStubLibrary, cudaErrorStubLibrary);
SAME_NUMBER(kErrorInsufficientDriver, cudaErrorInsufficientDriver);
SAME_NUMBER(kErrorDevicesUnavailable, cudaErrorDevicesUnavailable);
SAME_NUMBER(kErrorNoDevice, cudaErrorNoDevice);
SAME_NUMBER(kErrorInvalidDevice, cudaErrorInvalidDevice);
SAME_NUMBER(kErrorNoKernelImageForDevice, cudaErrorNoKernelImageForDevice);
SAME_NUMBER(kErrorEccUncorrectable, cudaErrorECCUncorrectable);
SAME_NUMBER(kErrorUnsupportedPtxVersion, cudaErrorUnsupportedPtxVersion);
SAME_NUMBER(kErrorNotReady, cudaErrorNotReady);
SAME_NUMBER(kErrorIllegalAddress, cudaErrorIllegalAddress);
SAME_NUMBER(kErrorLaunchOutOfResources, cudaErrorLaunchOutOfResources);
SAME_NUMBER(kErrorLaunchTimeout, cudaErrorLaunchTimeout);
SAME_NUMBER(kErrorLaunchFailure, cudaErrorLaunchFailure);
SAME_NUMBER(kErrorSystemNotReady, cudaErrorSystemNotReady);
SAME_NUMBER(kErrorSystemDriverMismatch, cudaErrorSystemDriverMismatch);
SAME_NUMBER(kErrorCompatNotSupportedOnDevice, cudaErrorCompatNotSupportedOnDevice);
SAME_NUMBER(kHostToHost, cudaMemcpyHostToHost);
SAME_NUMBER(kHostToDevice, cudaMemcpyHostToDevice);
SAME_NUMBER(kDeviceToHost, cudaMemcpyDeviceToHost);
SAME_NUMBER(kDeviceToDevice, cudaMemcpyDeviceToDevice);
SAME_NUMBER(kStreamNonBlocking, cudaStreamNonBlocking);
SAME_NUMBER(kEventDisableTiming, cudaEventDisableTiming);
SAME_NUMBER(kEventRecordExternal, cudaEventRecordExternal);
SAME_NUMBER(kEventWaitExternal, cudaEventWaitExternal);
SAME_NUMBER(kHostAllocPortable, cudaHostAllocPortable);
SAME_NUMBER(kHostRegisterPortable, cudaHostRegisterPortable);
SAME_NUMBER(kCaptureThreadLocal, cudaStreamCaptureModeThreadLocal);
SAME_NUMBER(kAttributeClockRate, cudaDevAttrClockRate);
SAME_NUMBER(kAttributeMultiProcessorCount, cudaDevAttrMultiProcessorCount);
SAME_NUMBER(kAttributeMemoryClockRate, cudaDevAttrMemoryClockRate);
SAME_NUMBER(kAttributeMemoryBusWidth, cudaDevAttrGlobalMemoryBusWidth);
SAME_NUMBER(kAttributeComputeCapabilityMajor, cudaDevAttrComputeCapabilityMajor);
SAME_NUMBER(kAttributeComputeCapabilityMinor, cudaDevAttrComputeCapabilityMinor);
static_assert(std::is_same_v<Stream, cudaStream_t> && std::is_same_v<Event, cudaEvent_t> &&
              std::is_same_v<Graph, cudaGraph_t> && std::is_same_v<GraphExec, cudaGraphExec_t>);

SAME_NUMBER(cublas_lt::kSuccess, CUBLAS_STATUS_SUCCESS);
SAME_NUMBER(cublas_lt::kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME_NUMBER(cublas_lt::kAllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
SAME_NUMBER(cublas_lt::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
SAME_NUMBER(cublas_lt::kArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH);
SAME_NUMBER(cublas_lt::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME_NUMBER(cublas_lt::kInternalError, CUBLAS_STATUS_INTERNAL_ERROR);
SAME_NUMBER(cublas_lt::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME_NUMBER(cublas_lt::kCompute32F, CUBLAS_COMPUTE_32F);
SAME_NUMBER(cublas_lt::kCompute32FFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME_NUMBER(cublas_lt::kReal32F, CUDA_R_32F);
SAME_NUMBER(cublas_lt::kReal16F, CUDA_R_16F);
SAME_NUMBER(cublas_lt::kReal16BF, CUDA_R_16BF);
SAME_NUMBER(cublas_lt::kOpN, CUBLAS_OP_N);
SAME_NUMBER(cublas_lt::kOpT, CUBLAS_OP_T);
SAME_NUMBER(cublas_lt::kDescTransA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME_NUMBER(cublas_lt::kDescTransB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME_NUMBER(cublas_lt::kDescEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME_NUMBER(cublas_lt::kDescBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME_NUMBER(cublas_lt::kDescBiasDataType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME_NUMBER(cublas_lt::kEpilogueDefault, CUBLASLT_EPILOGUE_DEFAULT);
SAME_NUMBER(cublas_lt::kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
SAME_NUMBER(cublas_lt::kPrefMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_NUMBER(cublas_lt::kPrefReductionSchemeMask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME_NUMBER(cublas_lt::kPrefMinAlignmentABytes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_NUMBER(cublas_lt::kPrefMinAlignmentBBytes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_NUMBER(cublas_lt::kPrefMinAlignmentCBytes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_NUMBER(cublas_lt::kPrefMinAlignmentDBytes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME_NUMBER(cublas_lt::kReductionNone, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME_NUMBER(cublas_lt::kReductionInPlace, CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME_NUMBER(cublas_lt::kReductionComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME_NUMBER(cublas_lt::kReductionOutputType, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
static_assert(sizeof(cublas_lt::MatmulAlgo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cublas_lt::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cublas_lt::HeuristicResult, workspace_size) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cublas_lt::HeuristicResult, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));
#define SAME_LT(name) SAME_CALL(CublasLt, cublasLt, name)
SAME_LT(GetVersion);
SAME_LT(GetStatusString);
SAME_LT(Create);
SAME_LT(Destroy);
SAME_LT(MatmulDescCreate);
SAME_LT(MatmulDescDestroy);
SAME_LT(MatmulDescSetAttribute);
SAME_LT(MatrixLayoutCreate);
SAME_LT(MatrixLayoutDestroy);
SAME_LT(MatmulPreferenceCreate);
SAME_LT(MatmulPreferenceDestroy);
SAME_LT(MatmulPreferenceSetAttribute);
SAME_LT(MatmulAlgoGetHeuristic);
SAME_LT(Matmul);

#ifdef TRAINER_HAS_CUDNN_HEADER
SAME_NUMBER(cudnn::kSuccess, CUDNN_STATUS_SUCCESS);
SAME_NUMBER(cudnn::kNotInitialized, CUDNN_STATUS_NOT_INITIALIZED);
SAME_NUMBER(cudnn::kBadParam, CUDNN_STATUS_BAD_PARAM);
SAME_NUMBER(cudnn::kNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
SAME_NUMBER(cudnn::kInternalError, CUDNN_STATUS_INTERNAL_ERROR);
SAME_NUMBER(cudnn::kHostAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
SAME_NUMBER(cudnn::kDeviceAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
SAME_NUMBER(cudnn::kExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);
SAME_NUMBER(cudnn::CategoryOf(cudnn::kDeviceAllocationFailed), CUDNN_STATUS_INTERNAL_ERROR);
SAME_NUMBER(cudnn::kDataFloat, CUDNN_DATA_FLOAT);
SAME_NUMBER(cudnn::kDataHalf, CUDNN_DATA_HALF);
SAME_NUMBER(cudnn::kDataBFloat16, CUDNN_DATA_BFLOAT16);
SAME_NUMBER(cudnn::kNchw, CUDNN_TENSOR_NCHW);
SAME_NUMBER(cudnn::kNhwc, CUDNN_TENSOR_NHWC);
SAME_NUMBER(cudnn::kCrossCorrelation, CUDNN_CROSS_CORRELATION);
SAME_NUMBER(cudnn::kDefaultMath, CUDNN_DEFAULT_MATH);
SAME_NUMBER(cudnn::kTensorOpMath, CUDNN_TENSOR_OP_MATH);
SAME_NUMBER(cudnn::kFmaMath, CUDNN_FMA_MATH);
SAME_NUMBER(cudnn::kNonDeterministic, CUDNN_NON_DETERMINISTIC);
SAME_NUMBER(cudnn::kDeterministic, CUDNN_DETERMINISTIC);
SAME_NUMBER(cudnn::kActivationRelu, CUDNN_ACTIVATION_RELU);
SAME_NUMBER(cudnn::kActivationIdentity, CUDNN_ACTIVATION_IDENTITY);
SAME_NUMBER(cudnn::kNotPropagateNan, CUDNN_NOT_PROPAGATE_NAN);
SAME_NUMBER(cudnn::kPropagateNan, CUDNN_PROPAGATE_NAN);
SAME_NUMBER(cudnn::kForwardImplicitPrecompGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
#define SAME_PERF(theirs)                                                                  \
  static_assert(sizeof(cudnn::AlgoPerf) == sizeof(theirs) &&                               \
                offsetof(cudnn::AlgoPerf, memory) == offsetof(theirs, memory) &&           \
                offsetof(cudnn::AlgoPerf, determinism) == offsetof(theirs, determinism) && \
                offsetof(cudnn::AlgoPerf, math_type) == offsetof(theirs, mathType))
SAME_PERF(cudnnConvolutionFwdAlgoPerf_t);
SAME_PERF(cudnnConvolutionBwdDataAlgoPerf_t);
SAME_PERF(cudnnConvolutionBwdFilterAlgoPerf_t);
#define SAME_DNN(name) SAME_CALL(Cudnn, cudnn, name)
SAME_DNN(GetVersion);
SAME_DNN(GetErrorString);
SAME_DNN(GetLastErrorString);
SAME_DNN(Create);
SAME_DNN(Destroy);
SAME_DNN(SetStream);
SAME_DNN(CreateTensorDescriptor);
SAME_DNN(DestroyTensorDescriptor);
SAME_DNN(SetTensorNdDescriptorEx);
SAME_DNN(CreateFilterDescriptor);
SAME_DNN(DestroyFilterDescriptor);
SAME_DNN(SetFilterNdDescriptor);
SAME_DNN(CreateConvolutionDescriptor);
SAME_DNN(DestroyConvolutionDescriptor);
SAME_DNN(SetConvolutionNdDescriptor);
SAME_DNN(SetConvolutionGroupCount);
SAME_DNN(SetConvolutionMathType);
SAME_DNN(CreateActivationDescriptor);
SAME_DNN(DestroyActivationDescriptor);
SAME_DNN(SetActivationDescriptor);
SAME_DNN(GetConvolutionForwardAlgorithm_v7);
SAME_DNN(FindConvolutionForwardAlgorithmEx);
SAME_DNN(GetConvolutionForwardWorkspaceSize);
SAME_DNN(ConvolutionForward);
SAME_DNN(ConvolutionBiasActivationForward);
SAME_DNN(GetConvolutionBackwardDataAlgorithm_v7);
SAME_DNN(FindConvolutionBackwardDataAlgorithmEx);
SAME_DNN(GetConvolutionBackwardDataWorkspaceSize);
SAME_DNN(ConvolutionBackwardData);
SAME_DNN(GetConvolutionBackwardFilterAlgorithm_v7);
SAME_DNN(FindConvolutionBackwardFilterAlgorithmEx);
SAME_DNN(GetConvolutionBackwardFilterWorkspaceSize);
SAME_DNN(ConvolutionBackwardFilter);
#endif

#ifdef TRAINER_HAS_NCCL_HEADER
SAME_NUMBER(nccl::kSuccess, ncclSuccess);
SAME_NUMBER(nccl::kUnhandledCudaError, ncclUnhandledCudaError);
SAME_NUMBER(nccl::kSystemError, ncclSystemError);
SAME_NUMBER(nccl::kInternalError, ncclInternalError);
SAME_NUMBER(nccl::kInvalidArgument, ncclInvalidArgument);
SAME_NUMBER(nccl::kInvalidUsage, ncclInvalidUsage);
SAME_NUMBER(nccl::kRemoteError, ncclRemoteError);
SAME_NUMBER(nccl::kInProgress, ncclInProgress);
SAME_NUMBER(nccl::kFloat32, ncclFloat32);
SAME_NUMBER(nccl::kSum, ncclSum);
SAME_NUMBER(sizeof(nccl::UniqueId), NCCL_UNIQUE_ID_BYTES);
SAME_CALL(Nccl, nccl, GetVersion);
SAME_CALL(Nccl, nccl, GetErrorString);
SAME_CALL(Nccl, nccl, GetUniqueId);
SAME_CALL(Nccl, nccl, CommInitRank);
SAME_CALL(Nccl, nccl, CommDestroy);
SAME_CALL(Nccl, nccl, CommAbort);
SAME_CALL(Nccl, nccl, CommGetAsyncError);
SAME_CALL(Nccl, nccl, AllReduce);
#endif

}  // namespace
}  // namespace trainer::cuda
