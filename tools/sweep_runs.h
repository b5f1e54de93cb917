#pragma once
// The runs of a sweep: their settings, folders and logs, and what became of them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainer {

// One combination of settings.
struct SweepRun {
  std::vector<std::string> settings;  // "base_lr=0.1": those that not all runs have
  std::vector<std::string> changes;   // the assignments of --set, these and the common ones
  std::string folder, prefix, log;    // of its own; prefix: its snapshot_prefix

  // "base_lr=0.1 momentum=0.9"
  std::string Name() const;
};

// All combinations of the values that `assignments` list, in folders below `folder`, which are
// named after the settings alone: a sweep with more values finds the runs of a smaller one.
// `prefix`: the solver's snapshot_prefix. Throws kUsage for a list that is empty or names a value
// twice, for no list at all, and for more than a thousand runs.
std::vector<SweepRun> RunsOf(const std::vector<std::string>& assignments, const std::string& folder,
                             const std::string& prefix);

// What became of a run. Its log holds one start after the other, each closed by a line with the
// exit code unless the machine went down.
struct SweepResult {
  struct Score {
    float value = 0;
    int iter = 0;
  };
  bool begun = false;            // there is a log
  std::optional<int> exit_code;  // of the last start; nothing: it runs, or was killed
  std::string problem;           // the last error line, without "error: "
  int iter = 0;                  // the last that its metrics name
  std::optional<float> loss;     // the last one of training
  std::string output;            // of the first test net that is compared, or ""
  bool lower_is_better = false;  // of that output
  std::optional<Score> best, last;

  // Whether there is nothing more to do: it came to its end, or its loss diverged, as it would
  // again.
  bool IsOver() const;
  std::string State() const;  // "finished", "diverged", "failed (74)", "stopped", "not begun", ...
};

// Of its log and its metrics.jsonl. `best_output` as in the solver. Throws as OpenForReading does,
// but for files that are missing, and as ReadMetrics.
SweepResult ReadResult(const SweepRun& run, const std::string& best_output);

// Closes a log. Throws the errors of files.
void NoteExit(const SweepRun& run, int code);

using SweepRow = std::pair<SweepRun, SweepResult>;

// The best first; then those without a test, by the last loss of training.
void SortByScore(std::vector<SweepRow>* rows);
std::string SweepTable(const std::vector<SweepRow>& sorted);

}  // namespace trainer
