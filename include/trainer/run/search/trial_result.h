#pragma once
// The results of trials, read from their folders.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/run/search/grid.h"

namespace trainer {

// The log of a trial holds one start after the other. A line with the exit code closes each of
// them, unless the computer failed.
struct TrialResult {
  // The value of a test output, and the iteration of the test.
  struct Score {
    float value = 0;
    int iter = 0;
  };
  bool begun = false;            // whether there is a log
  std::optional<int> exit_code;  // of the last start; nothing if it still runs or was killed
  std::string problem;           // the last error line, without "error: "
  int iter = 0;                  // the last iteration in the metrics
  std::optional<float> loss;     // the last training loss
  std::string output;            // the output of the first test net that is compared, or ""
  bool lower_is_better = false;  // for that output
  std::optional<Score> best, last;

  // Returns whether the trial finished or its loss diverged, which it would do again.
  bool IsFinished() const;
  // Returns "finished", "diverged", "failed (74)", "stopped", "not begun" or "running or killed".
  std::string State() const;
};

// Reads the trial's log and its metrics.jsonl; both may be missing. `best_output` is the field of
// the solver. Throws the errors of reading files and of ReadMetrics.
TrialResult ReadTrialResult(const Trial& trial, const std::string& best_output);

// Closes a log with the exit code of the start. Throws the errors of writing files.
void AppendExitCode(const Trial& trial, int code);

using TrialRow = std::pair<Trial, TrialResult>;

// Sorts the trials, the best test first, and after them trials without a test by their last
// training loss.
void SortByScore(std::vector<TrialRow>* rows);

// The results of all trials of a grid.
struct TrialReport {
  std::vector<TrialRow> rows;  // sorted by score
};

// Reads the results of all trials and sorts them. Throws as ReadTrialResult does.
TrialReport ReadTrials(const std::vector<Trial>& trials, const std::string& best_output);
// Returns a table, the errors of failed trials, and the name of the best trial.
std::string ToText(const TrialReport& report);

}  // namespace trainer
