#pragma once
// The trials of a grid search: one training run for each combination of settings.

#include <string>
#include <vector>

namespace trainer {

// One combination of settings.
struct Trial {
  std::vector<std::string> settings;  // "base_lr=0.1": the settings that differ between trials
  std::vector<std::string> changes;   // all assignments of --set, common ones included
  std::string folder;                 // of this trial alone
  std::string prefix;                 // snapshot_prefix, in the folder
  std::string log;                    // file in the folder

  // Returns "base_lr=0.1 momentum=0.9".
  std::string Name() const;
};

// Returns the trials of all combinations of the values that `assignments` list. Their folders are
// subfolders of `folder` and are named after the settings only, so a grid with more values finds
// the trials of a smaller one. `prefix` is the solver's snapshot_prefix. Throws kUsage if a list is
// empty or has a value twice, if no list has several values, and for more than a thousand trials.
std::vector<Trial> GridTrials(const std::vector<std::string>& assignments,
                              const std::string& folder, const std::string& prefix);

}  // namespace trainer
