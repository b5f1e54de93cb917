#include "trainer/run/start_point.h"

#include <glog/logging.h>

#include <optional>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/config/name_pattern.h"
#include "trainer/inference/pack/model_pack.h"

namespace trainer {

void RequireOneStart(const StartOptions& options) {
  const std::string& resume = options.resume;
  const bool is_state = resume.ends_with(".solverstate") || resume.ends_with(".solverstate.h5");
  if (!resume.empty() && !options.Resumes() && !is_state) {
    throw Error(ErrorCode::kUsage,
                Join("--resume=", EscapeControl(resume),
                     ": give auto, for the newest snapshot, or a .solverstate file"));
  }
  if (!resume.empty() && !options.Resumes() && !options.weights.empty()) {
    throw Error(ErrorCode::kUsage,
                "--resume with a file and --weights cannot both be given: a snapshot has its own "
                "weights; leave one of them out");
  }
  if (!options.snapshot.empty() && !options.weights.empty()) {
    throw Error(ErrorCode::kUsage,
                "--snapshot and --weights cannot both be given: a snapshot has its own weights; "
                "leave one of them out");
  }
  if (!options.NamedState().empty() && !options.reset.empty()) {
    throw Error(ErrorCode::kUsage,
                Join(options.snapshot.empty() ? "--resume=FILE" : "--snapshot",
                     " and --reset cannot both be given: a resumed run continues with all weights "
                     "of its snapshot; start from the weights with --weights instead"));
  }
  if (!options.snapshot.empty() && !resume.empty()) {
    throw Error(ErrorCode::kUsage,
                "--snapshot and --resume cannot both be given; leave one of them out");
  }
}

std::vector<std::string> WeightFiles(const StartOptions& options, const SolverSpec& spec) {
  std::vector<std::string> files = SplitList(options.weights);
  for (const std::string& list : spec.proto.weights()) {
    if (!options.weights.empty()) break;
    for (std::string& file : SplitList(list)) files.push_back(std::move(file));
  }
  UsePack(nullptr, &files);
  return files;
}

std::vector<std::string> ResetLayers(const StartOptions& options,
                                     const std::vector<std::string>& weights) {
  if (options.reset.empty()) return {};
  if (weights.empty()) {
    throw Error(ErrorCode::kUsage,
                EscapeControl(Join("--reset=", options.reset,
                                   ": no weights are loaded, so every layer starts anew; give "
                                   "--weights=FILE, or leave --reset out")));
  }
  return IsPattern(options.reset) ? std::vector<std::string>{options.reset}
                                  : SplitList(options.reset);
}

ResumePoint FindResumePoint(const StartOptions& options, const SolverSpec& spec,
                            const std::vector<std::string>& rescue_folders) {
  if (!options.Resumes()) return {options.NamedState(), 0};
  const std::string& prefix = spec.proto.snapshot_prefix();
  std::optional<LoadedState> rescued = NewestRescued(prefix, rescue_folders);
  std::optional<LoadedState> newest;
  try {
    newest = NewestSnapshot(prefix);
  } catch (const Error&) {
    if (!rescued) throw;
  }
  if (rescued && (!newest || rescued->state.iter() > newest->state.iter())) {
    newest = std::move(rescued);
  }
  if (newest) {
    LOG(INFO) << EscapeControl(Join("--resume=auto: the newest good snapshot of '", prefix,
                                    "' is from iteration ", newest->state.iter(), ", ",
                                    newest->path));
    return {newest->path, newest->state.iter()};
  }
  LOG(INFO) << EscapeControl(
      Join("No snapshot of '", prefix, "' exists yet: starting from the beginning"));
  return {};
}

}  // namespace trainer
