#pragma once
// Chooses the cuDNN algorithm for a direction of a convolution. It is the fastest one, measured
// once per shape, if there is memory for the trial and results need not repeat bit for bit from run
// to run; otherwise it is cuDNN's own first choice. Choices are stored in a file: see
// GpuOptions::algorithm_file.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cuda/conv/algorithm_file.h"
#include "cuda/conv/problem.h"

namespace trainer::cuda {

// Whether a forward convolution fuses bias and ReLU, and whether the fused call keeps NaN. Files
// store these numbers.
enum class ConvFusion { kNone = 0, kKeepsNan = 1, kDropsNan = 2 };

struct ConvAlgorithm {
  int algo = 0, math_type = 0;
  size_t workspace = 0;
  ConvFusion fusion = ConvFusion::kNone;
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

// Memory for a trial: input, weights, output and bias of one direction, filled with the byte
// `fill`, and workspace. It converts to false if the allocation failed.
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
