#include "trainer/run/search/grid.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/alternatives.h"

namespace trainer {
namespace {

constexpr size_t kMaxTrials = 1000;

// Returns a folder name made of the settings. A checksum distinguishes names whose letters had to
// be replaced or cut off.
std::string FolderName(const std::vector<std::string>& settings) {
  constexpr size_t kLongest = 100;
  const std::string whole = JoinList(settings, ",");
  std::string name = whole;
  for (char& letter : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) ||
                       std::string_view("._-+=,").find(letter) != std::string_view::npos;
    if (!plain) letter = '_';
  }
  name.resize(std::min(name.size(), kLongest));
  if (name != whole) name += Join("-", Crc32c(whole.data(), whole.size()));
  return name;
}

// Replaces each trial by one trial per alternative. A single alternative changes every trial, but
// is not one of the settings that name a trial.
void AddDimension(const std::vector<std::string>& alternatives, std::vector<Trial>* trials) {
  std::vector<Trial> more;
  for (const Trial& trial : *trials) {
    for (const std::string& setting : alternatives) {
      more.push_back(trial);
      AddChange(setting, &more.back());
      if (alternatives.size() > 1) more.back().settings.push_back(setting);
    }
  }
  *trials = std::move(more);
}

}  // namespace

std::string Trial::Name() const {
  const std::string name = EscapeControl(JoinList(settings, " "));
  if (seed == 0) return name;
  return Join(name, name.empty() ? "" : " ", "random_seed=", seed);
}

std::vector<std::string> Trial::Flags() const {
  std::vector<std::string> flags;
  for (const std::string& change : changes) flags.insert(flags.end(), {"--set", change});
  if (!batch.empty()) flags.push_back("--batch=" + batch);
  return flags;
}

void AddChange(const std::string& assignment, Trial* trial) {
  constexpr std::string_view kBatch = "batch=";
  if (assignment.starts_with(kBatch)) {
    trial->batch = assignment.substr(kBatch.size());
    if (ParseNumber<int64_t>(trial->batch).value_or(1) < 1) {
      throw Error(ErrorCode::kUsage, Join("--set ", assignment,
                                          ": a batch has at least 1 record; write e.g. batch=32"));
    }
  } else {
    trial->changes.push_back(assignment);
  }
}

std::vector<Trial> RunsOf(const Trial& trial, int seeds, const std::string& between,
                          const std::string& prefix) {
  std::vector<Trial> runs;
  for (int seed = std::min(seeds, 1); seed <= seeds; ++seed) {
    Trial& run = runs.emplace_back(trial);
    run.seed = seed;
    if (seed > 0) {
      run.folder += Join(between, "seed_", seed);
      run.changes.push_back(Join("random_seed=", seed));
    }
    run.prefix = JoinPath(run.folder, FileNameOf(prefix));
    run.log = JoinPath(run.folder, "log");
    run.changes.push_back("snapshot_prefix=" + run.prefix);
  }
  return runs;
}

std::vector<Trial> GridTrials(const std::vector<std::string>& assignments,
                              const std::string& folder, const std::string& prefix, int seeds) {
  std::vector<Trial> trials(1);
  size_t count = static_cast<size_t>(std::max(seeds, 1));
  for (const std::string& assignment : assignments) {
    const std::vector<std::string> alternatives = Alternatives(assignment);
    const std::set<std::string> distinct(alternatives.begin(), alternatives.end());
    if (distinct.size() != alternatives.size()) {
      throw Error(ErrorCode::kUsage,
                  EscapeControl(Join("--set ", assignment, ": the list has the same value twice")));
    }
    count *= alternatives.size();
    if (count > kMaxTrials) {
      throw Error(ErrorCode::kUsage, Join("these lists give more than ", kMaxTrials,
                                          " runs; give shorter lists, or several sweeps"));
    }
    AddDimension(alternatives, &trials);
  }
  if (count == 1) {
    throw Error(ErrorCode::kUsage,
                "nothing to compare: give several values, as in --set base_lr=0.1,0.01");
  }
  std::vector<Trial> all;
  for (size_t i = 0; i < trials.size(); ++i) {
    trials[i].number = static_cast<int>(i) + 1;
    const std::string name = FolderName(trials[i].settings);
    trials[i].folder = name.empty() ? folder : JoinPath(folder, name);
    std::ranges::move(RunsOf(trials[i], seeds, name.empty() ? "/" : ",", prefix),
                      std::back_inserter(all));
  }
  return all;
}

}  // namespace trainer
