#include <algorithm>
#include <iterator>
#include <vector>

#include "search/trial_state.h"
#include "trainer/base/file/file.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/monitor/test_score.h"
#include "trainer/run/search/random_search.h"

namespace trainer {

bool IsSearchFolder(const std::string& path) { return SearchFolder::IsSearch(path); }

TrialReport ReadSearch(const std::string& path) {
  const SearchFolder folder(path);
  const auto [seeds, best_output] = folder.ReadSeedsAndOutput();
  const std::vector<TrialState> states = folder.ReadAll();
  std::vector<Trial> runs;
  for (const TrialState& state : states) {
    Trial trial;
    trial.number = state.number;
    trial.settings = state.settings;
    trial.folder = folder.PathOf(state.number);
    std::ranges::move(RunsOf(trial, seeds, "_", ""), std::back_inserter(runs));
  }
  TrialReport report = ReadTrials(runs, best_output);
  report.numbered = true;
  for (TrialRow& row : report.rows) {
    const auto state = std::ranges::find(states, row.trial().number, &TrialState::number);
    row.stages = state->stages.size();
    if (state->failure != 0 || row.stages > 0) row.state = state->Text();
    if (state->diverged) row.score.mean.reset();  // the search ranks it last, too
  }
  SortByScore(&report.rows);
  return report;
}

std::vector<std::string> BestRunFolders(const TrialReport& search, size_t most) {
  std::vector<std::string> folders;
  for (const TrialRow& row : search.rows) {
    for (const auto& [run, result] : row.runs) {
      const bool has_metrics = Exists(JoinPath(run.folder, kMetricsName));
      if (has_metrics && folders.size() < most) folders.push_back(run.folder);
    }
  }
  return folders;
}

TrialReport ReadSweep(const Grid& grid, const GridOptions& options) {
  if (options.trials == 0) return ReadTrials(grid.trials, ScoredOutput(grid.spec.proto));
  return IsSearchFolder(grid.folder) ? ReadSearch(grid.folder) : TrialReport();
}

}  // namespace trainer
