#pragma once
// The results of single runs of a sweep, read from their folders.

#include <optional>
#include <string>

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
  int max_iter = 0;              // of the solver; 0: unknown
  // The smoothed training loss after the last iteration or, until the run ends, at the last
  // display.
  std::optional<float> loss;
  std::string output;            // the output of the first test net that is compared, or ""
  bool lower_is_better = false;  // for that output
  std::optional<Score> best, last;

  // Returns whether the trial finished or its loss diverged, which it would do again.
  bool IsFinished() const;
  bool HasDiverged() const;
  // Returns "finished", "diverged", "failed (74)", "stopped", "not begun" or "running or killed".
  std::string State() const;
};

// Reads the trial's log and its metrics.jsonl; both may be missing. `best_output` is the field of
// the solver. Throws the errors of reading files and of ReadMetrics.
TrialResult ReadTrialResult(const Trial& trial, const std::string& best_output);

// Closes a log with the exit code of the start. Throws the errors of writing files.
void AppendExitCode(const Trial& trial, int code);

}  // namespace trainer
