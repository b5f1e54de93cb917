#pragma once
// Descriptors of the emulated cuBLASLt, and the matrix product that they describe together.

#include <cstdint>

#include "cuda/bindings/cublas_lt.h"
#include "support/emulated_gpu/library.h"

namespace trainer::cuda::cublas_lt {

struct Context {
  int device;
};
struct MatmulDesc {
  int compute_type, scale_type;
  int32_t transpose_a = kOpN, transpose_b = kOpN, epilogue = kEpilogueDefault, bias_type = -1;
  const void* bias = nullptr;
};
struct MatrixLayout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
};
struct MatmulPreference {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignment[4] = {256, 256, 256, 256};  // for A, B, C, D
};

}  // namespace trainer::cuda::cublas_lt

namespace emulated_gpu {

namespace lt = trainer::cuda::cublas_lt;

// Column-major: element (r, c) is at r + c * leading.
struct Layout {
  trainer::DType type;
  int64_t rows, columns, leading;
  int64_t Count() const { return leading * (columns - 1) + rows; }
  size_t Bytes() const { return static_cast<size_t>(Count()) * trainer::SizeOf(type); }
};

// D = alpha * op(A) op(B) + beta * C + bias
struct Product {
  Layout a, b, c, d;
  bool transpose_a, transpose_b, tf32, jitter;
  float alpha, beta;
  const void *a_data, *b_data, *c_data;
  const float* bias;  // null, or one float per row of D
  void* d_data;
};

// Reads the descriptors into `product`. Returns 0, or the status of an invalid or unsupported
// product.
int Describe(lt::Handle handle, const lt::MatmulDesc* desc, const lt::MatrixLayout* a,
             const lt::MatrixLayout* b, const lt::MatrixLayout* c, const lt::MatrixLayout* d,
             Product* product);
bool IsLive(const lt::MatmulPreference* preference);

int FindAlgorithms(lt::Handle handle, lt::MatmulDesc* desc, lt::MatrixLayout* a,
                   lt::MatrixLayout* b, lt::MatrixLayout* c, lt::MatrixLayout* d,
                   lt::MatmulPreference* preference, int requested, lt::HeuristicResult* results,
                   int* returned);
int StartProduct(lt::Handle handle, lt::MatmulDesc* desc, const void* alpha, const void* a,
                 lt::MatrixLayout* a_layout, const void* b, lt::MatrixLayout* b_layout,
                 const void* beta, const void* c, lt::MatrixLayout* c_layout, void* d,
                 lt::MatrixLayout* d_layout, const lt::MatmulAlgo* algo, void* workspace,
                 size_t workspace_bytes, trainer::cuda::Stream stream);

}  // namespace emulated_gpu
