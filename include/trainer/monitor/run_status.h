#pragma once
// The progress of runs, read from their folders while they train or afterwards.

#include <optional>
#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {

// The state of a run, and how far it is.
struct RunStatus {
  RunMetrics history;
  std::optional<BestTest> best;
  std::string state;  // running, finished, stopped, dead or unknown
  std::string host, process;
  double left = -1;    // estimated seconds to the end; -1: unknown
  double silent = -1;  // seconds since the last update; -1: unknown
};

// Returns `folder` itself if it is the folder of a run, else its subfolders that are
// folders of runs, sorted. Throws kNoInput if there is none.
std::vector<std::string> FindRuns(const std::string& folder);

// Reads the status of the run in a folder. The state comes from the metrics and from the lock file
// next to the snapshots. Throws as ReadRunMetrics does.
RunStatus StatusOfRun(const std::string& folder);

Json ToJson(const RunStatus& status);
// Returns a table with one line for each run. The run with the best test is marked if all have the
// same kind of score.
std::string ToText(const std::vector<RunStatus>& runs);

}  // namespace trainer
