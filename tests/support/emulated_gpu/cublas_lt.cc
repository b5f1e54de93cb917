// cuBLASLt, with the arguments and results of its documentation. It has three algorithms: one
// splits k and needs a workspace, one adds in place in no fixed order, and one takes everything.

#include "support/emulated_gpu/cublas_lt.h"

#include <algorithm>
#include <vector>

#include "support/emulated_gpu/memory.h"
#include "support/emulated_gpu/stream.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;
using trainer::cuda::Stream;

enum Algorithm : uint64_t { kSplit, kInPlace, kPlain };
constexpr uint64_t kMark = 0x656d756c61746564;

void Multiply(const Product& p) {
  const int64_t depth = p.transpose_a ? p.a.rows : p.a.columns;
  const auto load = [&](const Layout& layout, const void* data, int64_t row, int64_t column) {
    const float value = LoadAt(layout.type, data, row + column * layout.leading);
    return p.tf32 ? RoundToTf32(value) : value;
  };
  for (int64_t column = 0; column < p.d.columns; ++column) {
    for (int64_t row = 0; row < p.d.rows; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += double{p.transpose_a ? load(p.a, p.a_data, k, row) : load(p.a, p.a_data, row, k)} *
               (p.transpose_b ? load(p.b, p.b_data, column, k) : load(p.b, p.b_data, k, column));
      }
      float value = p.alpha * static_cast<float>(p.jitter ? Jitter(static_cast<float>(sum)) : sum);
      if (p.beta != 0) {
        value += p.beta * LoadAt(p.c.type, p.c_data, row + column * p.c.leading);
      }
      if (p.bias != nullptr) value += p.bias[row];
      StoreAt(p.d.type, p.d_data, row + column * p.d.leading, value);
    }
  }
}

size_t WorkspaceOf(Algorithm algorithm, const Product& p) {
  return algorithm == kSplit ? static_cast<size_t>(p.d.rows * p.d.columns) * 8 : 0;
}

uint64_t ShapeOf(const Product& p) {
  uint64_t shape = 0;
  for (const Layout& it : {p.a, p.b, p.d}) {
    shape = shape * 1000003 + static_cast<uint64_t>(it.rows * 31 + it.columns * 37 + it.leading);
  }
  return shape;
}

// Returns 0, or the status if an operand differs from what the algorithm was chosen for.
int CheckOperands(const lt::Handle handle, const Product& p, uint64_t alignments) {
  struct Operand {
    const char* name;
    const void* data;
    size_t bytes;
  };
  const Operand operands[] = {
      {"the bias of cublasLtMatmul", p.bias, static_cast<size_t>(p.d.rows) * sizeof(float)},
      {"A of cublasLtMatmul", p.a_data, p.a.Bytes()},
      {"B of cublasLtMatmul", p.b_data, p.b.Bytes()},
      {"C of cublasLtMatmul", p.beta != 0 ? p.c_data : p.d_data, p.c.Bytes()},
      {"D of cublasLtMatmul", p.d_data, p.d.Bytes()}};
  for (int i = 0; i < 5; ++i) {
    const auto& [name, data, bytes] = operands[i];
    if (i == 0 && data == nullptr) continue;
    if (!IsOperand(handle->device, data, bytes, name)) return lt::kExecutionFailed;
    const uint64_t promised = alignments >> (8 * (4 - i)) & 0xff;
    if (reinterpret_cast<uintptr_t>(data) % promised != 0) {
      AddProblem(Join(name, ": not at a multiple of ", promised, " bytes, as was promised"));
      return lt::kNotSupported;
    }
  }
  return 0;
}

}  // namespace

int FindAlgorithms(lt::Handle handle, lt::MatmulDesc* desc, lt::MatrixLayout* a,
                   lt::MatrixLayout* b, lt::MatrixLayout* c, lt::MatrixLayout* d,
                   lt::MatmulPreference* preference, int requested, lt::HeuristicResult* results,
                   int* returned) {
  const LibraryCall call("cublasLtMatmulAlgoGetHeuristic", lt::kNotSupported, lt::kExecutionFailed);
  *returned = 0;
  if (call.status() != 0) return call.status();
  Product p = {};
  if (const int status = Describe(handle, desc, a, b, c, d, &p)) return status;
  if (!IsLive(preference) || requested < 1) return lt::kInvalidValue;
  // cuBLASLt has no alignment preference for the bias. All kernels read it in vectors of 16 bytes.
  uint64_t alignments = 16;
  for (const uint32_t alignment : preference->alignment) {
    alignments = alignments << 8 | std::min(alignment, 16u);
  }
  const int64_t depth = p.transpose_a ? p.a.rows : p.a.columns;
  const std::vector<Algorithm> order = depth >= p.d.rows
                                           ? std::vector<Algorithm>{kSplit, kInPlace, kPlain}
                                           : std::vector<Algorithm>{kPlain, kSplit, kInPlace};
  for (const Algorithm algorithm : order) {
    const size_t workspace = WorkspaceOf(algorithm, p);
    const uint32_t reduction = algorithm == kSplit     ? lt::kReductionComputeType
                               : algorithm == kInPlace ? lt::kReductionInPlace
                                                       : 0;
    if (workspace > preference->workspace || (reduction & ~preference->reductions) != 0) continue;
    if (*returned == requested) break;
    results[(*returned)++] = {.algo = {{kMark, algorithm, alignments, ShapeOf(p)}},
                              .workspace_size = workspace,
                              .state = lt::kSuccess,
                              .waves_count = 1,
                              .reserved = {}};
  }
  return 0;
}

int StartProduct(lt::Handle handle, lt::MatmulDesc* desc, const void* alpha, const void* a,
                 lt::MatrixLayout* a_layout, const void* b, lt::MatrixLayout* b_layout,
                 const void* beta, const void* c, lt::MatrixLayout* c_layout, void* d,
                 lt::MatrixLayout* d_layout, const lt::MatmulAlgo* algo, void* workspace,
                 size_t workspace_bytes, Stream stream) {
  const LibraryCall call("cublasLtMatmul", lt::kNotSupported, lt::kExecutionFailed);
  if (call.status() != 0) return call.status();
  Product p = {};
  if (const int status = Describe(handle, desc, a_layout, b_layout, c_layout, d_layout, &p)) {
    return status;
  }
  if (alpha == nullptr || beta == nullptr || algo == nullptr || algo->data[0] != kMark ||
      algo->data[3] != ShapeOf(p)) {
    return lt::kInvalidValue;
  }
  if (CheckStream(stream, "cublasLtMatmul") != 0) return lt::kExecutionFailed;
  p.alpha = *static_cast<const float*>(alpha);
  p.beta = *static_cast<const float*>(beta);
  p.a_data = a;
  p.b_data = b;
  p.c_data = c;
  p.d_data = d;
  p.bias = desc->epilogue == lt::kEpilogueBias ? static_cast<const float*>(desc->bias) : nullptr;
  if (desc->epilogue == lt::kEpilogueBias && p.bias == nullptr) return lt::kInvalidValue;
  const auto algorithm = static_cast<Algorithm>(algo->data[1]);
  p.jitter = algorithm == kInPlace;
  const size_t needed = WorkspaceOf(algorithm, p);
  if (workspace_bytes < needed) return lt::kInvalidValue;
  if (needed > 0 &&
      !IsOperand(handle->device, workspace, needed, "the workspace of cublasLtMatmul")) {
    return lt::kExecutionFailed;
  }
  if (needed > 0 && !IsWorkspaceAligned(workspace, "cublasLtMatmul")) return lt::kInvalidValue;
  if (const int status = CheckOperands(handle, p, algo->data[2])) return status;
  const auto run = [=] {
    if (needed > 0) std::memset(workspace, 0xff, needed);
    Multiply(p);
  };
  const size_t read = p.a.Bytes() + p.b.Bytes() + (p.beta != 0 ? p.c.Bytes() : 0) +
                      (p.bias != nullptr ? static_cast<size_t>(p.d.rows) * sizeof(float) : 0);
  const int queued = Queue(stream, {.run = run,
                                    .devices = 1u << handle->device,
                                    .blocks = kManyBlocks,
                                    .read_bytes = static_cast<int64_t>(read),
                                    .written_bytes = static_cast<int64_t>(p.d.Bytes())});
  return queued == 0 ? 0 : lt::kExecutionFailed;
}

}  // namespace emulated_gpu
