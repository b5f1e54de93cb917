#pragma once
// Which of its algorithms cuDNN computes a direction of a convolution with: its own first choice,
// or the fastest as measured once for each shape, where there is memory for the trial and results
// need not repeat bit for bit from run to run. What was chosen is kept in a file: see
// GpuOptions::algorithm_file.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cuda/conv/algorithm_file.h"
#include "cuda/conv/problem.h"

namespace trainer::cuda {

// Whether a forward convolution has bias and ReLU in its call, and what becomes of NaN there. Kept
// in files as these numbers.
enum class ConvFusion { kNone = 0, kKeepsNan = 1, kDropsNan = 2 };

struct ConvAlgorithm {
  int algo = 0, math_type = 0;
  size_t workspace = 0;
  ConvFusion fusion = ConvFusion::kNone;
};

// By ConvProblem::Key, those of this device.
class ConvAlgorithms {
 public:
  explicit ConvAlgorithms(const CudaDevice& device) : device_(device) {}
  const ConvAlgorithm* Find(const std::string& key) const {
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : &found->second;
  }
  void Add(const std::string& key, const ConvAlgorithm& algorithm) { known_[key] = algorithm; }
  // Those of all runs with such a GPU. To be asked where cuDNN is there.
  AlgorithmFile& file();

 private:
  const CudaDevice& device_;
  std::optional<AlgorithmFile> file_;
  std::map<std::string, ConvAlgorithm> known_;
};

// No algorithm may ask for more, as all convolutions share one piece of scratch.
inline constexpr size_t kMaxConvWorkspace = size_t{512} << 20;

// Memory for a trial: input, weights and output of one direction, and workspace; all bytes are
// `fill`. Null where there is not enough.
class TrialMemory {
 public:
  TrialMemory(const ConvProblem& problem, unsigned char fill, size_t workspace);
  ~TrialMemory();
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte *x = nullptr, *filter = nullptr, *y = nullptr, *bias = nullptr, *workspace = nullptr;
  size_t workspace_bytes = 0;

 private:
  void* memory_ = nullptr;
};

// The three calls of a direction that a choice needs.
struct ConvDirection {
  const char* name;  // "forward"
  int (*heuristics)(const ConvProblem& problem, int most, int* found, cudnn::AlgoPerf* results);
  int (*measure)(const ConvProblem& problem, const TrialMemory& trial, int most, int* found,
                 cudnn::AlgoPerf* results);
  int (*workspace)(const ConvProblem& problem, int algo, size_t* bytes);
};

// Sets the problem's math type to the algorithm's. Where there is none, `reason` says why.
// `finish`, if any, completes what was chosen before it is remembered; false where it could not,
// for lack of memory, so that later runs have to try again.
std::optional<ConvAlgorithm> ChooseAlgorithm(
    ConvProblem& problem, const ConvDirection& direction, std::string* reason,
    const std::function<bool(ConvAlgorithm&)>& finish = nullptr);

}  // namespace trainer::cuda
