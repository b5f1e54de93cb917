#pragma once
// The trials of a grid search: one training run for each combination of settings.

#include <string>
#include <vector>

namespace trainer {

// One run of a sweep: one combination of settings and, with --seeds, one of its seeds.
struct Trial {
  int number = 0;  // of the combination, from 1; its runs with other seeds have the same number
  int seed = 0;    // the random_seed that --seeds gives to the run; 0: the solver's own
  std::vector<std::string> settings;  // "base_lr=0.1": the settings that differ between trials
  std::vector<std::string> changes;   // all assignments of --set, common ones included
  std::string batch;                  // value of --batch: the setting "batch" is not a field
  std::string folder;                 // of this run alone
  std::string prefix;                 // snapshot_prefix, in the folder
  std::string log;                    // file in the folder

  // Returns "base_lr=0.1 momentum=0.9", with the seed if the run has one of its own.
  std::string Name() const;
  // Returns the flags of `trainer train` for the changes and the batch.
  std::vector<std::string> Flags() const;
};

// Adds an assignment to the changes of a trial, or sets its batch.
void AddChange(const std::string& assignment, Trial* trial);

// Returns the runs of a trial, whose folder is set: the trial itself if `seeds` is 0, or one run
// for each of the seeds 1 to `seeds`, whose folders are `folder`<between>seed_1, ... Sets their
// files; `prefix` is the solver's snapshot_prefix.
std::vector<Trial> RunsOf(const Trial& trial, int seeds, const std::string& between,
                          const std::string& prefix);

// Returns the trials of all combinations of the values that `assignments` list, each with `seeds`
// runs (0: one run). Their folders are subfolders of `folder` and are named after the settings
// only, so a grid with more values finds the trials of a smaller one. `prefix` is the solver's
// snapshot_prefix. Throws kUsage if a list is empty or has a value twice, if nothing differs, and
// for more than a thousand runs.
std::vector<Trial> GridTrials(const std::vector<std::string>& assignments,
                              const std::string& folder, const std::string& prefix, int seeds = 0);

}  // namespace trainer
