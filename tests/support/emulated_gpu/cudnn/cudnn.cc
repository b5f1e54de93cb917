// The calls of the emulated cuDNN that choose an algorithm and convolve.

#include <algorithm>
#include <cmath>
#include <memory>

#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/cudnn/cudnn_calls.h"
#include "support/emulated_gpu/library.h"
#include "support/emulated_gpu/stream.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;

constexpr int kMisaligned = 2003, kTooSmall = 2006;

constexpr const char* kNames[] = {"Forward", "BackwardData", "BackwardFilter"};

struct Names {
  std::string text;
  Names(const char* before, Direction direction, const char* after)
      : text(Join("cudnn", before, "Convolution", kNames[static_cast<int>(direction)], after)) {}
};

LibraryCall Begin(const Names& name) {
  return LibraryCall(name.text.c_str(), cudnn::kNotSupported, cudnn::kExecutionFailed);
}

AlgoPerf Result(const AlgorithmRule& rule, const Convolution& conv, int math_type) {
  AlgoPerf result = {};
  result.algo = rule.algo;
  Convolution with = conv;
  with.math_type = math_type;
  result.status = Takes(rule, with);
  result.time = -1;
  result.memory = result.status == 0 ? WorkspaceBytes(rule, conv) : 0;
  result.determinism = rule.deterministic ? cudnn::kDeterministic : cudnn::kNonDeterministic;
  result.math_type = math_type;
  return result;
}

// Returns all algorithms, first the ones that work; with TF32 allowed, each also without it.
std::vector<AlgoPerf> AllResults(const Convolution& conv) {
  std::vector<AlgoPerf> results;
  for (const AlgorithmRule& rule : AlgorithmsOf(conv.direction)) {
    results.push_back(Result(rule, conv, conv.math_type));
    if (conv.tf32) results.push_back(Result(rule, conv, cudnn::kFmaMath));
  }
  std::stable_partition(results.begin(), results.end(),
                        [](const auto& it) { return it.status == 0; });
  return results;
}

int Give(const std::vector<AlgoPerf>& all, int requested, int* returned, AlgoPerf* results) {
  if (requested < 1 || returned == nullptr || results == nullptr) {
    return Refuse(cudnn::kBadParam, "no room for an algorithm");
  }
  *returned = std::min(requested, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *returned, results);
  return 0;
}

// Returns 0, or the status if an operand is missing or not aligned as kernels need it.
int CheckOperands(Handle handle, const Convolving& what) {
  const Convolution& c = what.conv;
  const int64_t x = c.InCount(), w = c.FilterCount(), y = c.OutCount();
  const int64_t counts[3][3] = {{x, w, y}, {w, y, x}, {x, y, w}};
  const int64_t* const count = counts[static_cast<int>(c.direction)];
  struct Operand {
    const char* name;
    const void* data;
    int64_t count;
  };
  for (const auto& [name, data, n] :
       {Operand{"the first operand", what.first, count[0]},
        Operand{"the second operand", what.second, count[1]},
        Operand{"the result", what.result, count[2]}, Operand{"z", what.z, count[2]},
        Operand{"the bias", what.bias, c.filters}}) {
    const bool may_miss = data == nullptr && (name[0] == 'z' || name == std::string("the bias"));
    if (may_miss) continue;
    if (!IsOperand(handle->device, data, c.Bytes(n), Join(name, " of a convolution of cuDNN"))) {
      return Refuse(cudnn::kBadParam, Join(name, " is not there"));
    }
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0 && name != std::string("the bias")) {
      return Refuse(kMisaligned, Join(name, " is not at a multiple of 16 bytes"));
    }
  }
  return 0;
}

struct Operands {
  int64_t read, written;  // bytes
};

Operands OperandsOf(const Convolving& what) {
  const Convolution& c = what.conv;
  const int64_t x = c.InCount(), w = c.FilterCount(), y = c.OutCount();
  const int64_t result = c.direction == Direction::kForward ? y
                         : c.direction == Direction::kData  ? x
                                                            : w;
  int64_t read = x + w + y - result;
  if (what.beta != 0) read += result;
  if (what.alpha2 != 0) read += result;
  if (what.bias != nullptr) read += c.filters;
  return {static_cast<int64_t>(c.Bytes(read)), static_cast<int64_t>(c.Bytes(result))};
}

// Queues the convolution if the algorithm takes it and the workspace is large enough, else returns
// the status. It needs `more_workspace` bytes beyond the algorithm's own need.
int Run(Handle handle, Convolving what, int algo, void* workspace, size_t workspace_bytes,
        size_t more_workspace = 0) {
  const AlgorithmRule* const rule = FindAlgorithm(what.conv.direction, algo);
  if (rule == nullptr) return Refuse(cudnn::kNotSupported, Join("algorithm ", algo));
  if (const int status = Takes(*rule, what.conv)) return status;
  const size_t needed = WorkspaceBytes(*rule, what.conv) + more_workspace;
  if (workspace_bytes < needed) {
    return Refuse(kTooSmall, Join("a workspace of ", workspace_bytes, " bytes, not ", needed));
  }
  if (needed > 0 && !IsOperand(handle->device, workspace, needed, "the workspace of cuDNN")) {
    return Refuse(cudnn::kBadParam, "the workspace is not there");
  }
  if (needed > 0 && !IsWorkspaceAligned(workspace, "cuDNN")) {
    return Refuse(kMisaligned, "the workspace is not at a multiple of 256 bytes");
  }
  if (const int status = CheckOperands(handle, what)) return status;
  if (CheckStream(handle->stream, "cuDNN") != 0) {
    return Refuse(cudnn::kExecutionFailed, "the handle has no stream");
  }
  what.jitter = !rule->deterministic;
  const auto run = [=] {
    if (needed > 0) std::memset(workspace, 0xff, needed);
    Convolve(what);
  };
  const Operands bytes = OperandsOf(what);
  // The result if nothing is computed: NaN if the weights of a forward convolution are NaN and it
  // keeps NaN; else positive numbers, which pass a ReLU.
  const auto skip = [=] {
    constexpr int kNan = 0xff, kPositive = 0x3c;  // in each byte of any storage type
    const bool is_nan = std::isnan(LoadAt(what.conv.type, what.second, 0));
    const bool keeps = what.conv.direction == Direction::kForward && (!what.relu || what.keeps_nan);
    std::memset(what.result, keeps && is_nan ? kNan : kPositive,
                static_cast<size_t>(bytes.written));
  };
  const int queued = Queue(handle->stream, {.run = run,
                                            .instead = skip,
                                            .devices = 1u << handle->device,
                                            .blocks = kManyBlocks,
                                            .read_bytes = bytes.read,
                                            .written_bytes = bytes.written});
  return queued == 0 ? 0 : Refuse(cudnn::kExecutionFailed, "the capture is invalid");
}

}  // namespace

int ListAlgorithms(Direction direction, Handle handle, Tensor x, Filter w, Conv conv, Tensor y,
                   int requested, int* returned, AlgoPerf* results) {
  const LibraryCall call = Begin({"Get", direction, "Algorithm_v7"});
  if (call.status() != 0) return call.status();
  Convolution c;
  if (const int status = Describe(direction, handle, x, w, conv, y, &c)) return status;
  return Give(AllResults(c), requested, returned, results);
}

int SizeWorkspace(Direction direction, Handle handle, Tensor x, Filter w, Conv conv, Tensor y,
                  int algo, size_t* bytes) {
  const LibraryCall call = Begin({"Get", direction, "WorkspaceSize"});
  if (call.status() != 0) return call.status();
  Convolution c;
  if (const int status = Describe(direction, handle, x, w, conv, y, &c)) return status;
  const AlgorithmRule* const rule = FindAlgorithm(direction, algo);
  if (rule == nullptr) return Refuse(cudnn::kNotSupported, Join("algorithm ", algo));
  if (const int status = Takes(*rule, c)) return status;
  *bytes = WorkspaceBytes(*rule, c);
  return 0;
}

int StartConvolution(Direction direction, Handle handle, const void* alpha, Tensor x, Filter w,
                     Conv conv, Tensor y, const void* first, const void* second, int algo,
                     void* workspace, size_t workspace_bytes, const void* beta, void* result) {
  const LibraryCall call = Begin({"", direction, ""});
  if (call.status() != 0) return call.status();
  Convolving what = {};
  if (const int status = Describe(direction, handle, x, w, conv, y, &what.conv)) return status;
  if (alpha == nullptr || beta == nullptr) return Refuse(cudnn::kBadParam, "no factors");
  what.alpha = *static_cast<const float*>(alpha);
  what.beta = *static_cast<const float*>(beta);
  what.first = first;
  what.second = second;
  what.result = result;
  return Run(handle, what, algo, workspace, workspace_bytes);
}

// Waits for the measurement, and overwrites the result and the workspace.
int MeasureAlgorithms(Direction direction, Handle handle, Tensor x, Filter w, Conv conv, Tensor y,
                      const void* first, const void* second, void* result, int requested,
                      int* returned, AlgoPerf* results, void* workspace, size_t workspace_bytes) {
  const LibraryCall call = Begin({"Find", direction, "AlgorithmEx"});
  if (call.status() != 0) return call.status();
  Convolving what = {};
  Convolution& c = what.conv;
  if (const int status = Describe(direction, handle, x, w, conv, y, &c)) return status;
  what.first = first;
  what.second = second;
  what.result = result;
  if (const int status = CheckOperands(handle, what)) return status;
  if (calls::RefuseInCapture("cudnnFindConvolution") != 0 ||
      CheckStream(handle->stream, "cuDNN") != 0 || handle->stream->capture != nullptr) {
    return Refuse(cudnn::kExecutionFailed, "a captured stream, or none");
  }
  if (workspace_bytes > 0 &&
      !IsOperand(handle->device, workspace, workspace_bytes, "cuDNN's workspace")) {
    return Refuse(cudnn::kBadParam, "the workspace is not there");
  }
  if (workspace_bytes > 0 && !IsWorkspaceAligned(workspace, "cuDNN's measuring")) {
    return Refuse(kMisaligned, "the workspace is not at a multiple of 256 bytes");
  }
  const size_t bytes = c.Bytes(direction == Direction::kForward ? c.OutCount()
                               : direction == Direction::kData  ? c.InCount()
                                                                : c.FilterCount());
  const auto run = [=] {
    std::memset(result, 0xff, bytes);
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
  };
  Queue(handle->stream, {.run = run, .devices = 1u << handle->device, .blocks = kManyBlocks});
  FinishStream(handle->stream);
  ++TheCounters().synchronizations;
  std::vector<AlgoPerf> all = AllResults(c);
  for (AlgoPerf& it : all) {
    if (it.status == 0 && it.memory > workspace_bytes) it.status = cudnn::kHostAllocationFailed;
    if (it.status == 0) it.time = 0.01f * static_cast<float>(1 + TheRandom().Below(100));
  }
  std::stable_sort(all.begin(), all.end(), [](const AlgoPerf& a, const AlgoPerf& b) {
    return (a.status == 0 ? a.time : INFINITY) < (b.status == 0 ? b.time : INFINITY);
  });
  return Give(all, requested, returned, results);
}

int StartFused(Handle handle, const void* alpha1, Tensor x, const void* x_data, Filter w,
               const void* w_data, Conv conv, int algo, void* workspace, size_t workspace_bytes,
               const void* alpha2, Tensor z, const void* z_data, Tensor bias, const void* bias_data,
               CudnnTable::Activation activation, Tensor y, void* y_data) {
  const LibraryCall call("cudnnConvolutionBiasActivationForward", cudnn::kNotSupported,
                         cudnn::kExecutionFailed);
  if (call.status() != 0) return call.status();
  Convolving what = {};
  if (const int status = Describe(Direction::kForward, handle, x, w, conv, y, &what.conv)) {
    return status;
  }
  if (alpha1 == nullptr || alpha2 == nullptr || bias == nullptr || z == nullptr ||
      !IsLive(activation)) {
    return Refuse(cudnn::kBadParam, "a missing argument");
  }
  std::vector<int> of_bias(y->dims.size(), 1);
  of_bias[1] = y->dims[1];
  if (bias->type != y->type || bias->dims != of_bias) {
    return Refuse(cudnn::kBadParam, "a bias of another type, or not of one number per filter");
  }
  if (z->type != y->type || z->dims != y->dims || z->format != y->format) {
    return Refuse(cudnn::kBadParam, "z is not like y");
  }
  const bool relu = activation->mode == cudnn::kActivationRelu;
  const bool propagates = activation->nan == cudnn::kPropagateNan;
  if ((!relu && activation->mode != cudnn::kActivationIdentity) ||
      (propagates && !TheOptions().fused_relu_propagates_nan) ||
      (!relu && algo != cudnn::kForwardImplicitPrecompGemm)) {
    return Refuse(cudnn::kNotSupported, "this activation with this algorithm");
  }
  what.alpha = *static_cast<const float*>(alpha1);
  what.alpha2 = *static_cast<const float*>(alpha2);
  what.first = x_data;
  what.second = w_data;
  what.result = y_data;
  what.z = z_data;
  what.bias = bias_data;
  what.relu = relu;
  what.keeps_nan = propagates || TheOptions().fused_relu_keeps_nan;
  if (bias_data == nullptr) return Refuse(cudnn::kBadParam, "no bias");
  return Run(handle, what, algo, workspace, workspace_bytes, TheOptions().fused_workspace);
}

}  // namespace emulated_gpu
