#pragma once
// The results of a sweep as a ranking and as tables.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/run/search/grid.h"
#include "trainer/run/search/trial_result.h"

namespace trainer {

// The scores of the runs of one trial: their best tests or, if a run has no test, the training
// losses of their last iterations.
struct MeanScore {
  std::optional<double> mean;  // nothing if one of several runs diverged, or if none has a score
  double spread = 0;           // the standard deviation (n - 1); 0 with one run
  size_t runs = 0;             // that have a score
  bool tested = false;         // the scores are tests
  bool lower_is_better = true;

  // Returns the mean, or its negative if higher scores are better; infinity without a mean.
  double Cost() const;
};
MeanScore MeanOf(std::span<const TrialResult> results);

// One trial: its runs, which differ in their seeds only.
struct TrialRow {
  std::vector<std::pair<Trial, TrialResult>> runs;  // not empty
  MeanScore score;
  size_t stages = 0;  // of early stopping that it completed
  std::string state;  // "finished", "stopped at 1/9", ...

  const Trial& trial() const { return runs[0].first; }
};

// The results of all trials of a sweep.
struct TrialReport {
  std::vector<TrialRow> rows;  // sorted by SortByScore
  bool numbered = false;       // the trials are known by their numbers
};

// Sorts the trials: those that completed more stages first, then the best test first, and after
// them trials without a test by their last training loss.
void SortByScore(std::vector<TrialRow>* rows);

// Reads the results of all runs and sorts them. Throws as ReadTrialResult does.
TrialReport ReadTrials(const std::vector<Trial>& trials, const std::string& best_output);

// A row of texts for each trial, and the heads of the columns.
struct TrialCells {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};
TrialCells CellsOf(const TrialReport& report);

// Returns a table, the errors of failed runs, and the name of the best trial. Returns a sentence if
// there are no trials.
std::string ToText(const TrialReport& report);

}  // namespace trainer
