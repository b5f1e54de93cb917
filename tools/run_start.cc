#include "run_start.h"

#include <glog/logging.h>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"

namespace trainer {

Flag SnapshotFlag() {
  return {
      .name = "snapshot", .value = "FILE", .help = "resume from this .solverstate, bit for bit"};
}

Flag AllowOutsideFlag() {
  return {.name = "allow_outside",
          .kind = FlagKind::kSwitch,
          .help =
              "if the snapshot's weights are not in its folder, load them from the path that the "
              "snapshot names"};
}

Flag ResumeFlag() {
  return {.name = "resume",
          .value = "auto",
          .help =
              "resume from the newest undamaged snapshot of snapshot_prefix; if there is none, "
              "start from the beginning",
          .choices = "auto",
          .otherwise = "to resume from that file give --snapshot="};
}

Flag StartWeightsFlag() {
  return {.name = "weights",
          .value = "FILES",
          .help = "start from these .caffemodel files, separated by commas"};
}

void RefuseTwoStarts(const Flags& flags) {
  if (flags.Has("snapshot") && flags.Has("weights")) {
    throw Error(ErrorCode::kUsage,
                "--snapshot and --weights cannot both be given: a snapshot has its own weights; "
                "leave one of them out");
  }
  if (flags.Has("snapshot") && flags.Has("resume")) {
    throw Error(ErrorCode::kUsage,
                "--snapshot and --resume cannot both be given; leave one of them out");
  }
}

std::vector<std::string> WeightFiles(const Flags& flags, const SolverSpec& spec) {
  if (flags.Has("weights")) return flags.List("weights");
  std::vector<std::string> files;
  for (const std::string& list : spec.proto.weights()) {
    for (std::string& file : SplitList(list)) files.push_back(std::move(file));
  }
  return files;
}

ResumePoint WhereToResume(const Flags& flags, const SolverSpec& spec,
                          const std::vector<std::string>& rescue_folders) {
  if (!flags.Has("resume")) return {flags.Text("snapshot"), 0};
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
