#include "job_flags.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"

namespace trainer {

void DeclareCores(FlagSet& flags, int* cores) {
  flags
      .Bind(cores, "cores", "N",
            "cores for each rank; 0: as many as the net keeps busy, up to the cores of a node")
      .Range(0, 100000);
}

void DeclareArrayLimit(FlagSet& flags, int* limit) {
  flags
      .Bind(limit, "array_limit", "N",
            "run at most N tasks of the job array at once; 0: no limit (Slurm)")
      .Range(0, 100000);
}

std::vector<Flag> FlagsOfTrain(std::span<const std::string_view> without) {
  static const DeclaredVerb train(*VerbRegistry::Get().Find("train"));  // the flags refer to it
  std::vector<Flag> flags(train.flags.flags().begin(), train.flags.flags().end());
  std::erase_if(flags, [&](const Flag& flag) {
    return std::ranges::find(without, flag.name) != without.end();
  });
  return flags;
}

std::vector<std::string> CommandWords(const std::string& verb, std::span<const Flag> table,
                                      std::initializer_list<std::string_view> repeated,
                                      const Flags& flags) {
  std::vector<std::string> words = {"trainer", verb, "--solver=" + flags.Text("solver")};
  for (const std::string& word : GivenFlags(table, flags)) {
    if (word.starts_with("--solver=")) continue;
    words.push_back(word == "--gpu=0" ? "--gpu" : word);
  }
  for (const std::string_view name : repeated) {
    for (const std::string& value : flags.Each(name)) {
      words.insert(words.end(), {Join("--", name), value});
    }
  }
  return words;
}

void RequireFlagsOfSystem(const std::string& system, const std::vector<std::string>& words) {
  constexpr std::pair<const char*, std::string_view> kSystems[] = {
      {"--mpirun", "slurm"},
      {"--seeds", "slurm"},
      {"--array_limit", "slurm"},
      {"--qos", "slurm, moab"},
      {"--account", "slurm, pbs, moab, lsf"},
      {"--constraint", "slurm, pbs, moab, lsf"},
      {"--mail", "slurm, pbs, moab, lsf"},
      {"--partition", "slurm, pbs, moab, lsf, sqsub"},
      {"--output", "slurm, pbs, moab, lsf, sqsub"}};
  for (const auto& [flag, systems] : kSystems) {
    const bool is_given = std::ranges::any_of(words, [&](const std::string& word) {
      return word == flag || word.starts_with(Join(flag, "="));
    });
    const std::vector<std::string> all = SplitList(systems);
    if (!is_given || std::ranges::find(all, system) != all.end()) continue;
    throw Error(ErrorCode::kUsage,
                Join(flag, ": this flag works with --system=", systems, ", not with ", system,
                     "; leave it out, or pass the line that your queue needs with --line"));
  }
}

}  // namespace trainer
