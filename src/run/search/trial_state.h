#pragma once
// The files of a random search: search.json describes the search, and each trial has a file of its
// own.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/run/search/grid_search.h"

namespace trainer {

// The content of trial_0007.json, which exists from the first start of the trial on. Only the
// process that holds the trial's lock writes it.
struct TrialState {
  // Training until a share of the iterations, which is finished.
  struct Stage {
    std::string until;           // "1/9", or "1" for the whole run
    std::optional<double> mean;  // of the runs' scores; nothing if there is none, or one diverged
    double spread = 0;
  };

  int number = 0;
  std::vector<std::string> settings;
  std::vector<Stage> stages;
  bool lower_is_better = true;
  bool over = false;      // nothing is left to train: finished, diverged, or ended by `patience`
  bool diverged = false;  // a run
  int failure = 0;        // the exit code of a run that failed in the last start, or 0

  // Returns the mean of a finished stage, or its negative if higher scores are better; infinity
  // without a mean.
  double Cost(size_t stage) const;
  // Returns "finished", "stopped at 1/9", "diverged", "failed (74)" or "begun".
  std::string Text() const;
};

// The folder of a search. Processes that share it also share the trials.
class SearchFolder {
 public:
  explicit SearchFolder(std::string path) : path_(std::move(path)) {}

  // Creates the folder and search.json, or compares it with what is there. Throws kCannotCreate if
  // the folder belongs to a search with other settings; the number of trials may differ.
  void Begin(const Grid& grid, const GridOptions& options) const;

  // Returns `folder`/trial_0007, the name of the trial's lock and folder.
  std::string PathOf(int number) const;
  // Returns whether the folder has a search.json.
  static bool IsSearch(const std::string& path);
  // Reads from search.json how many seeds a trial has, and the output that trials are compared by.
  // Throws kData if it is damaged.
  std::pair<int, std::string> ReadSeedsAndOutput() const;
  // Reads all trials that have begun, in the order of their numbers. Throws as Read does.
  std::vector<TrialState> ReadAll() const;
  // Reads a trial; its first state if it has no file. Throws kData for a file of another form.
  TrialState Read(const Trial& trial) const;
  void Write(const TrialState& state) const;

 private:
  std::string path_;
};

}  // namespace trainer
