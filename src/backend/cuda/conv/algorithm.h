#pragma once
// Chooses the cuDNN algorithm for a direction of a convolution. It is the fastest one, measured
// once per shape, if there is memory for the trial and results need not repeat bit for bit from run
// to run; otherwise it is cuDNN's own first choice. Choices are stored in a file: see
// GpuOptions::algorithm_file.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cuda/conv/algorithm_file.h"
#include "cuda/conv/problem.h"

namespace trainer::cuda {

// Whether a forward convolution fuses bias and ReLU, and whether the fused call keeps NaN:
// kPropagatesNan if it is asked to (CUDNN_PROPAGATE_NAN), kKeepsNan and kDropsNan if it is not.
// Files store these numbers.
enum class ConvFusion { kNone = 0, kKeepsNan = 1, kDropsNan = 2, kPropagatesNan = 3 };

struct ConvAlgorithm {
  int algo = 0, math_type = 0;
  size_t workspace = 0;
  ConvFusion fusion = ConvFusion::kNone;
  // The fused call needs this much, if that is more than the library reports for the algorithm.
  size_t fused_workspace = 0;

  // Returns the workspace of every call with this algorithm.
  size_t Workspace() const { return std::max(workspace, fused_workspace); }
};

// The algorithms chosen on this device, by ConvProblem::Key.
class ConvAlgorithms {
 public:
  explicit ConvAlgorithms(const CudaDevice& device) : device_(device) {}
  // Returns the algorithm of a problem, or null.
  const ConvAlgorithm* Find(const std::string& key) const {
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : &found->second;
  }
  void Add(const std::string& key, const ConvAlgorithm& algorithm) { known_[key] = algorithm; }
  // Returns the file with the choices of all runs on this kind of GPU. May only be called if cuDNN
  // was found.
  AlgorithmFile& file();

 private:
  const CudaDevice& device_;
  std::optional<AlgorithmFile> file_;
  std::map<std::string, ConvAlgorithm> known_;
};

// Upper limit of an algorithm's workspace; all convolutions share one scratch buffer.
inline constexpr size_t kMaxConvWorkspace = size_t{512} << 20;

// Memory for a trial: input, weights, output and bias of one direction, and workspace. It converts
// to false if the allocation failed.
class TrialMemory {
 public:
  // The numbers in the tensors. Times are measured on kRandom, finite numbers in [-1, 1): on zeros
  // a GPU needs less power, so it runs at a higher clock than in training.
  enum class Fill { kRandom, kNan };
  TrialMemory(const ConvProblem& problem, Fill fill, size_t workspace);
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte *x = nullptr, *filter = nullptr, *y = nullptr, *bias = nullptr, *workspace = nullptr;
  size_t workspace_bytes = 0;

 private:
  struct Free {
    void operator()(void* memory) const { GetRuntime()->Free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
};

// The three cuDNN calls of a direction that the choice needs. Each returns a cudnnStatus_t. `found`
// is the number of results, the best first.
struct ConvDirection {
  const char* name;  // "forward"
  int (*heuristics)(const ConvProblem& problem, int most, int* found, cudnn::AlgoPerf* results);
  int (*measure)(const ConvProblem& problem, const TrialMemory& trial, int most, int* found,
                 cudnn::AlgoPerf* results);
  int (*workspace)(const ConvProblem& problem, int algo, size_t* bytes);
};

// Chooses an algorithm, by the device's earlier choices, the file or a new choice, and sets the
// problem's math type to the algorithm's. If there is none, sets `reason`. `finish`, if given,
// completes the choice before it is stored; it returns false if it lacked memory, and later runs
// then choose again.
std::optional<ConvAlgorithm> ChooseAlgorithm(
    ConvProblem& problem, const ConvDirection& direction, std::string* reason,
    const std::function<bool(ConvAlgorithm&)>& finish = nullptr);

}  // namespace trainer::cuda
