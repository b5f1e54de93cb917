#include "start_flags.h"

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

StartOptions StartOptionsOf(const Flags& flags) {
  StartOptions options = WeightOptionsOf(flags);
  options.snapshot = flags.Text("snapshot");
  options.resume = flags.Text("resume");
  options.allow_outside = flags.Switch("allow_outside");
  return options;
}

StartOptions WeightOptionsOf(const Flags& flags) {
  StartOptions options;
  options.weights = flags.Text("weights");
  return options;
}

}  // namespace trainer
