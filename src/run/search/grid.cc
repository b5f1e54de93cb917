#include "trainer/run/search/grid.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
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
      more.back().changes.push_back(setting);
      if (alternatives.size() > 1) more.back().settings.push_back(setting);
    }
  }
  *trials = std::move(more);
}

}  // namespace

std::string Trial::Name() const { return EscapeControl(JoinList(settings, " ")); }

std::vector<Trial> GridTrials(const std::vector<std::string>& assignments,
                              const std::string& folder, const std::string& prefix) {
  std::vector<Trial> trials(1);
  size_t count = 1;
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
  for (Trial& trial : trials) {
    trial.folder = JoinPath(folder, FolderName(trial.settings));
    trial.prefix = JoinPath(trial.folder, FileNameOf(prefix));
    trial.log = JoinPath(trial.folder, "log");
    trial.changes.push_back("snapshot_prefix=" + trial.prefix);
  }
  return trials;
}

}  // namespace trainer
