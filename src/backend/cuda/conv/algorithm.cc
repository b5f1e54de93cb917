#include "cuda/conv/algorithm.h"

#include <algorithm>
#include <array>
#include <span>
#include <sstream>

#include "cuda/bindings/library_types.h"
#include "cuda/bindings/nvml.h"
#include "cuda/conv/random_fill.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

// More results than any direction has, counting each math type.
constexpr int kMaxResults = 24;
using Results = std::array<cudnn::AlgoPerf, kMaxResults>;

// Returns the first usable algorithm of `results`, with its current workspace size: it works,
// repeats bit for bit if the user asks for that, and needs at most kMaxConvWorkspace. If there is
// none, sets *reason.
std::optional<ConvAlgorithm> FirstUsable(ConvProblem& problem, const ConvDirection& direction,
                                         std::span<const cudnn::AlgoPerf> results,
                                         std::string* reason) {
  const bool deterministic = problem.device().options().deterministic;
  size_t least = 0;
  bool random = false;
  for (const cudnn::AlgoPerf& result : results) {
    if (result.status != cudnn::kSuccess) continue;
    if (deterministic && result.determinism != cudnn::kDeterministic) {
      random = true;
      continue;
    }
    ConvAlgorithm algorithm = {.algo = result.algo,
                               .math_type = problem.AllowedMath(result.math_type)};
    problem.SetMath(algorithm.math_type);
    if (direction.workspace(problem, algorithm.algo, &algorithm.workspace) != cudnn::kSuccess) {
      continue;
    }
    if (algorithm.workspace <= kMaxConvWorkspace) return algorithm;
    least = least == 0 ? algorithm.workspace : std::min(least, algorithm.workspace);
  }
  *reason = least > 0 ? Join("its algorithms need ", (least + 0xfffff) >> 20,
                             " MiB of workspace, more than ", kMaxConvWorkspace >> 20)
            : random  ? "none of its algorithms repeats bit for bit"
                      : "it has no algorithm for this";
  return std::nullopt;
}

// Returns cuDNN's own first choice. Sets `most` to the largest workspace of the usable algorithms.
std::optional<ConvAlgorithm> ByHeuristics(ConvProblem& problem, const ConvDirection& direction,
                                          size_t* most, std::string* reason) {
  Results results;
  int found = 0;
  problem.SetFirstMath();
  if (direction.heuristics(problem, kMaxResults, &found, results.data()) != cudnn::kSuccess) {
    found = 0;
  }
  const std::span<const cudnn::AlgoPerf> known(results.data(), static_cast<size_t>(found));
  *most = 0;
  for (const cudnn::AlgoPerf& result : known) {
    const bool usable = result.status == cudnn::kSuccess && result.memory <= kMaxConvWorkspace;
    if (usable) *most = std::max(*most, result.memory);
  }
  return FirstUsable(problem, direction, known, reason);
}

// Measures all algorithms on random tensors and returns the fastest usable one. Returns nothing
// if there is not enough memory for the trial.
std::optional<ConvAlgorithm> ByMeasuring(ConvProblem& problem, const ConvDirection& direction,
                                         size_t workspace) {
  const TrialMemory trial(problem, TrialMemory::Fill::kRandom, workspace);
  if (!trial) return std::nullopt;
  Results results;
  int found = 0;
  problem.SetFirstMath();
  if (direction.measure(problem, trial, kMaxResults, &found, results.data()) != cudnn::kSuccess) {
    return std::nullopt;
  }
  std::string reason;
  return FirstUsable(problem, direction, std::span(results.data(), static_cast<size_t>(found)),
                     &reason);
}

// Returns the problem's key, extended by the options that the choice depends on.
std::string FileKey(const ConvProblem& problem, const ConvDirection& direction) {
  const GpuOptions& options = problem.device().options();
  return Join(problem.Key(direction.name), options.tf32 ? " tf32" : "",
              options.deterministic ? " deterministic" : "");
}

// Returns whether there is memory for the algorithm now: another process may have measured with
// more memory free.
bool Fits(const ConvProblem& problem, const ConvAlgorithm& algorithm) {
  return problem.InBytes() + problem.FilterBytes() + problem.OutBytes() + algorithm.Workspace() <=
         problem.device().AvailableBytes();
}

// Returns the choice in the file if the library still accepts it.
std::optional<ConvAlgorithm> FromFile(ConvProblem& problem, const ConvDirection& direction,
                                      AlgorithmFile& file) {
  const auto text = file.Find(FileKey(problem, direction));
  if (!text) return std::nullopt;
  ConvAlgorithm algorithm;
  std::istringstream words(*text);
  int fusion = 0;
  if (!(words >> algorithm.algo >> algorithm.math_type >> fusion) || fusion < 0 ||
      fusion > static_cast<int>(ConvFusion::kPropagatesNan)) {
    return std::nullopt;
  }
  algorithm.fusion = static_cast<ConvFusion>(fusion);
  if (!(words >> algorithm.fused_workspace)) algorithm.fused_workspace = 0;
  algorithm.math_type = problem.AllowedMath(algorithm.math_type);
  problem.SetMath(algorithm.math_type);
  if (direction.workspace(problem, algorithm.algo, &algorithm.workspace) != cudnn::kSuccess ||
      algorithm.Workspace() > kMaxConvWorkspace || !Fits(problem, algorithm)) {
    return std::nullopt;
  }
  return algorithm;
}

// Chooses without the file and adds the choice to it, unless it could not be measured or completed
// for lack of memory.
std::optional<ConvAlgorithm> ChooseAnew(ConvProblem& problem, const ConvDirection& direction,
                                        AlgorithmFile& file, std::string* reason,
                                        const std::function<bool(ConvAlgorithm&)>& finish) {
  size_t most = 0;
  std::optional<ConvAlgorithm> chosen = ByHeuristics(problem, direction, &most, reason);
  if (!chosen) return chosen;
  bool lasting = problem.device().options().deterministic;
  if (!lasting) {
    if (const auto measured = ByMeasuring(problem, direction, most)) {
      chosen = measured;
      lasting = true;
    }
  }
  problem.SetMath(chosen->math_type);
  if (finish && !finish(*chosen)) lasting = false;
  if (lasting) {
    const std::string fused_workspace =
        chosen->fused_workspace == 0 ? "" : Join(' ', chosen->fused_workspace);
    file.Add(FileKey(problem, direction), Join(chosen->algo, ' ', chosen->math_type, ' ',
                                               static_cast<int>(chosen->fusion), fused_workspace));
  }
  return chosen;
}

}  // namespace

// A workspace that does not fit is halved: most algorithms need little.
TrialMemory::TrialMemory(const ConvProblem& problem, Fill fill, size_t most_workspace) {
  const Runtime& runtime = *GetRuntime();
  const CudaDevice& device = problem.device();
  const size_t bias_bytes = static_cast<size_t>(problem.desc().out_channels) * sizeof(float);
  ScratchLayout layout;
  const auto x_at = layout.AddBytes(problem.InBytes());
  const auto filter_at = layout.AddBytes(problem.FilterBytes());
  const auto y_at = layout.AddBytes(problem.OutBytes());
  const auto bias_at = layout.AddBytes(bias_bytes);
  device.Use();
  size_t bytes = 0;
  for (workspace_bytes = most_workspace;; workspace_bytes /= 2) {
    bytes = layout.Bytes() + WorkspaceRoom(workspace_bytes);
    void* allocated = nullptr;
    if (runtime.Malloc(&allocated, bytes) == kSuccess) {
      memory_.reset(allocated);
      break;
    }
    runtime.GetLastError();
    if (workspace_bytes < (size_t{1} << 20)) return;
  }
  const std::span<std::byte> all(static_cast<std::byte*>(memory_.get()), bytes);
  x = x_at.At(all);
  filter = filter_at.At(all);
  y = y_at.At(all);
  bias = bias_at.At(all);
  workspace = WorkspaceIn(layout.Tail(all).data());
  if (fill == Fill::kNan) {
    device.Memset(memory_.get(), 0xff, layout.Bytes());
    return;
  }
  const DType type = problem.desc().dtype;
  FillWithRandom(device, type, problem.InBytes(), x);
  FillWithRandom(device, type, problem.FilterBytes(), filter);
  FillWithRandom(device, type, problem.OutBytes(), y);
  FillWithRandom(device, DType::kF32, bias_bytes, bias);
}

AlgorithmFile& ConvAlgorithms::file() {
  const GpuOptions& options = device_.options();
  if (!file_) {
    const std::string identity =
        Join(device_.Model(), ", driver ", DriverVersion(), ", cuDNN ", GetCudnn()->GetVersion());
    file_.emplace(options.algorithm_file, identity, options.algorithm_file_asked);
  }
  return *file_;
}

std::optional<ConvAlgorithm> ChooseAlgorithm(ConvProblem& problem, const ConvDirection& direction,
                                             std::string* reason,
                                             const std::function<bool(ConvAlgorithm&)>& finish) {
  ConvAlgorithms& known = problem.device().conv_algorithms();
  const std::string key = problem.Key(direction.name);
  if (const ConvAlgorithm* before = known.Find(key)) {
    problem.SetMath(before->math_type);
    return *before;
  }
  problem.device().Use();
  std::optional<ConvAlgorithm> chosen = FromFile(problem, direction, known.file());
  if (!chosen) {
    const AlgorithmFile::Turn turn(known.file());
    chosen = FromFile(problem, direction, known.file());
    if (!chosen) chosen = ChooseAnew(problem, direction, known.file(), reason, finish);
  }
  if (chosen) known.Add(key, *chosen);
  return chosen;
}

}  // namespace trainer::cuda
