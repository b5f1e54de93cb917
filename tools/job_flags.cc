#include "job_flags.h"

#include <algorithm>
#include <memory>

#include "trainer/cli/verb.h"

namespace trainer {

Flag CoresFlag() {
  return {
      .name = "cores",
      .kind = FlagKind::kWhole,
      .value = "N",
      .fallback = "0",
      .help = "cores for each rank; 0: as many as the net keeps busy, up to the cores of a node",
      .max = 100000};
}

Flag ArrayLimitFlag() {
  return {.name = "array_limit",
          .kind = FlagKind::kWhole,
          .value = "N",
          .fallback = "0",
          .help = "run at most N tasks of the job array at once; 0: no limit (Slurm)",
          .max = 100000};
}

std::vector<Flag> FlagsOfTrain(std::span<const std::string_view> without) {
  // The flags refer to texts of the set and to members of the verb.
  static const std::unique_ptr<Verb> train = VerbRegistry::Get().Find("train")->make();
  static FlagSet set("train");
  if (set.flags().empty()) train->Declare(set);
  std::vector<Flag> flags(set.flags().begin(), set.flags().end());
  std::erase_if(flags, [&](const Flag& flag) {
    return std::ranges::find(without, flag.name) != without.end();
  });
  return flags;
}

}  // namespace trainer
