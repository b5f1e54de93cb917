#pragma once
// The cuBLASLt calls that the backend uses, as a table of functions. It is filled from the library
// that libraries.cc opens or by the emulated GPU of the tests. Names, semantics and values follow
// the cuBLASLt API, versions 12 and 13, without the prefixes cublasLt and CUBLASLT_; enums are
// passed as int. Users need no CUDA headers; constants_check_linked.cc compares the values with
// them.

#include <cstddef>
#include <cstdint>

#include "cuda/bindings/runtime.h"

namespace trainer::cuda {
namespace cublas_lt {

// cublasStatus_t
inline constexpr int kSuccess = 0, kNotInitialized = 1, kAllocFailed = 3, kInvalidValue = 7,
                     kArchMismatch = 8, kExecutionFailed = 13, kInternalError = 14,
                     kNotSupported = 15;
// cublasComputeType_t. kCompute32F does not round f32 inputs; for 16-bit inputs it is the usual
// mode of tensor cores.
inline constexpr int kCompute32F = 68, kCompute32FFastTf32 = 77;
// cudaDataType
inline constexpr int kReal32F = 0, kReal16F = 2, kReal16BF = 14;
// cublasOperation_t
inline constexpr int kOpN = 0, kOpT = 1;
// cublasLtMatmulDescAttributes_t: all are int32_t except the pointer
inline constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8,
                     kDescBiasDataType = 26;
// cublasLtEpilogue_t. The bias has one element per row of D, which is column-major.
inline constexpr int kEpilogueDefault = 1, kEpilogueBias = 4;
// cublasLtMatmulPreferenceAttributes_t: kPrefMaxWorkspaceBytes is uint64_t, the others uint32_t
inline constexpr int kPrefMaxWorkspaceBytes = 1, kPrefReductionSchemeMask = 3,
                     kPrefMinAlignmentABytes = 5, kPrefMinAlignmentBBytes = 6,
                     kPrefMinAlignmentCBytes = 7, kPrefMinAlignmentDBytes = 8;
// cublasLtReductionScheme_t. In-place reduction adds in no fixed order.
inline constexpr uint32_t kReductionNone = 0, kReductionInPlace = 1, kReductionComputeType = 2,
                          kReductionOutputType = 4;

struct Context;
struct MatmulDesc;
struct MatrixLayout;
struct MatmulPreference;
using Handle = Context*;

struct MatmulAlgo {
  uint64_t data[8];
};
struct HeuristicResult {
  MatmulAlgo algo;
  size_t workspace_size;
  int state;  // kSuccess if the rest is valid
  float waves_count;
  int reserved[4];
};

}  // namespace cublas_lt

struct CublasLt {
  size_t (*GetVersion)();  // 10000 * major + 100 * minor + patch: 130100
  const char* (*GetStatusString)(int status);
  int (*Create)(cublas_lt::Handle* handle);
  int (*Destroy)(cublas_lt::Handle handle);

  int (*MatmulDescCreate)(cublas_lt::MatmulDesc** desc, int compute_type, int scale_type);
  int (*MatmulDescDestroy)(cublas_lt::MatmulDesc* desc);
  int (*MatmulDescSetAttribute)(cublas_lt::MatmulDesc* desc, int attribute, const void* value,
                                size_t bytes);
  // Describes a column-major matrix: `leading` elements from one column to the next.
  int (*MatrixLayoutCreate)(cublas_lt::MatrixLayout** layout, int type, uint64_t rows,
                            uint64_t columns, int64_t leading);
  int (*MatrixLayoutDestroy)(cublas_lt::MatrixLayout* layout);
  int (*MatmulPreferenceCreate)(cublas_lt::MatmulPreference** preference);
  int (*MatmulPreferenceDestroy)(cublas_lt::MatmulPreference* preference);
  int (*MatmulPreferenceSetAttribute)(cublas_lt::MatmulPreference* preference, int attribute,
                                      const void* value, size_t bytes);
  // Returns kNotSupported, or kSuccess with 0 results, if there is no algorithm.
  int (*MatmulAlgoGetHeuristic)(cublas_lt::Handle handle, cublas_lt::MatmulDesc* desc,
                                cublas_lt::MatrixLayout* a, cublas_lt::MatrixLayout* b,
                                cublas_lt::MatrixLayout* c, cublas_lt::MatrixLayout* d,
                                cublas_lt::MatmulPreference* preference, int requested,
                                cublas_lt::HeuristicResult* results, int* returned);
  // Computes D = alpha * op(A) op(B) + beta * C; alpha and beta are floats in host memory.
  int (*Matmul)(cublas_lt::Handle handle, cublas_lt::MatmulDesc* desc, const void* alpha,
                const void* a, cublas_lt::MatrixLayout* a_layout, const void* b,
                cublas_lt::MatrixLayout* b_layout, const void* beta, const void* c,
                cublas_lt::MatrixLayout* c_layout, void* d, cublas_lt::MatrixLayout* d_layout,
                const cublas_lt::MatmulAlgo* algo, void* workspace, size_t workspace_bytes,
                Stream stream);
};

// Returns the table of cuBLASLt; null while the library is not open: see OpenLibraries().
const CublasLt* GetCublasLt();
// Sets the table in tests, instead of a library; null: not available.
void SetCublasLt(const CublasLt* table);

}  // namespace trainer::cuda
