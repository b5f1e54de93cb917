#include "trainer/run/search/random_search.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "search/halving.h"
#include "search/trial_runner.h"
#include "search/trial_state.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/monitor/test_score.h"
#include "trainer/run/jobs/time_limit.h"
#include "trainer/run/search/trial_result.h"
#include "trainer/run/until.h"

namespace trainer {
namespace {

// Returns the iteration until which a stage trains a run of `max_iter` iterations.
int LastIterOf(const std::string& stage, int max_iter) {
  return stage == kWholeRun ? max_iter : UntilIter(stage, max_iter);
}

// One process of a search.
class SearchWorker {
 public:
  SearchWorker(const Grid& grid, const GridOptions& options, const GridSearchOptions& search)
      : options_(options),
        search_(search),
        best_output_(ScoredOutput(grid.spec.proto)),
        folder_(grid.folder),
        stages_(StagesOf(options.stops_early)),
        runner_(options, search) {
    for (const Trial& run : grid.trials) {
      if (trials_.empty() || trials_.back()[0].number != run.number) trials_.emplace_back();
      trials_.back().push_back(run);
    }
    folder_.Begin(grid, options);
    for (const TrialState& state : ReadStates()) {
      if (state.failure != 0) retries_.insert(state.number);
      if (!state.stages.empty()) progress_.Skip(1);
    }
  }

  // Takes trials until there is none. Returns what RunSearch returns.
  int Run() {
    while (const std::optional<Claim> claim = Take()) {
      if (!TrainStage(*claim)) return search_.stop_exit_code;
    }
    if (busy_ > 0) {
      progress_.Say(Join("Other processes train ", Counted(busy_, "trial"),
                         " of this search; nothing else is left to do"));
    }
    return ExitCode();
  }

 private:
  // A trial that this process may train.
  struct Claim {
    std::unique_ptr<SnapshotLock> lock;
    TrialState state;
    std::span<const Trial> runs;
  };

  std::vector<TrialState> ReadStates() const {
    std::vector<TrialState> states;
    for (const std::vector<Trial>& runs : trials_) states.push_back(folder_.Read(runs[0]));
    return states;
  }

  // Returns the first trial that can be trained and that no other process has; nothing if there is
  // none. Another process may change a trial before its lock is held, so it is read again.
  std::optional<Claim> Take() {
    for (bool changed = true; changed;) {
      changed = false;
      busy_ = 0;
      const std::vector<TrialState> states = ReadStates();
      for (const size_t i : NextTrials(states, stages_.size())) {
        const TrialState& seen = states[i];
        if (seen.failure != 0 && !retries_.contains(seen.number)) continue;
        Claim claim{SnapshotLock::Try(folder_.PathOf(seen.number)), {}, trials_[i]};
        if (claim.lock == nullptr) {
          ++busy_;
          continue;
        }
        claim.state = folder_.Read(trials_[i][0]);
        changed = claim.state.stages.size() != seen.stages.size() || claim.state.over ||
                  claim.state.failure != seen.failure;
        if (changed) break;
        retries_.erase(seen.number);
        return claim;
      }
    }
    return std::nullopt;
  }

  std::string NameOf(const Claim& claim) const {
    return Join("Trial ", claim.state.number, " of ", trials_.size(), ", ",
                EscapeControl(JoinList(claim.state.settings, " ")));
  }

  // Trains the runs of a trial until the end of its next stage and stores the result. Returns false
  // if a signal or the deadline stopped it.
  bool TrainStage(const Claim& claim) {
    TrialState state = claim.state;
    const std::string& stage = stages_[state.stages.size()];
    const std::string name = NameOf(claim);
    progress_.SetDoing("Training trial " + Join(state.number));
    state.failure = 0;
    folder_.Write(state);
    std::vector<TrialResult> results;
    for (const Trial& run : claim.runs) {
      PrepareFolder(options_, run);
      TrialResult result = ReadTrialResult(run, best_output_);
      if (!HasReached(result, stage)) {
        const std::string until = stage == kWholeRun ? "" : stage;
        LOG(INFO) << name << (until.empty() ? "" : ", until " + until) << ": its log is "
                  << EscapeControl(run.log);
        const ExitStatus status = runner_.Train(run, until);
        if (TrialRunner::IsStop(status)) {
          progress_.Say(Join(name, ": ", TrialRunner::DescribeStop(status)));
          return false;
        }
        result = ReadTrialResult(run, best_output_);
      }
      results.push_back(result);
      if (!result.IsFinished()) state.failure = result.exit_code.value_or(0);
      state.diverged = state.diverged || result.HasDiverged();
      if (state.failure != 0 || state.diverged) break;
    }
    if (state.failure == 0) Complete(stage, results, &state);
    folder_.Write(state);
    Report(name, state, results);
    return true;
  }

  // Returns whether an earlier start has trained the run to the end of the stage.
  static bool HasReached(const TrialResult& result, const std::string& stage) {
    if (result.HasDiverged()) return true;
    return result.exit_code == 0 && result.max_iter > 0 &&
           result.iter >= LastIterOf(stage, result.max_iter);
  }

  // Adds the finished stage to the state. A run that ended earlier by `patience` ends its trial.
  void Complete(const std::string& stage, std::span<const TrialResult> results,
                TrialState* state) const {
    const bool ended_early = std::ranges::any_of(results, [&](const TrialResult& result) {
      return result.iter < LastIterOf(stage, result.max_iter);
    });
    MeanScore score = MeanOf(results);
    if (state->diverged) score.mean.reset();
    state->lower_is_better = score.lower_is_better;
    state->stages.push_back({stage, score.mean, score.spread});
    state->over = ended_early || state->diverged || state->stages.size() == stages_.size();
  }

  // Says how a trial ended.
  void Report(const std::string& name, const TrialState& state,
              std::span<const TrialResult> results) {
    std::string text = Join(name, ": ", state.Text());
    if (state.failure != 0) {
      text += ": " + EscapeControl(results.back().problem);
    } else if (state.stages.back().mean) {
      const std::string& output = results[0].output;
      text += Join(", ", output.empty() ? "last loss " : "best " + EscapeControl(output) + " ",
                   *state.stages.back().mean);
      if (results.size() > 1) {
        text +=
            Join(" (mean of ", results.size(), " runs, spread ", state.stages.back().spread, ")");
      }
    } else if (!state.diverged) {
      text += ", without a score: its metrics have no test and no loss; see its log";
    }
    if (state.stages.size() == 1) progress_.Add(1);
    progress_.Say(text);
  }

  // Returns the exit code of the first trial that failed, kDiverged if all diverged, or 0.
  int ExitCode() const {
    const std::vector<TrialState> states = ReadStates();
    const auto failed =
        std::ranges::find_if(states, [](const TrialState& state) { return state.failure != 0; });
    if (failed != states.end()) return failed->failure;
    const bool diverged = std::ranges::all_of(states, &TrialState::diverged);
    return diverged ? static_cast<int>(ErrorCode::kDiverged) : 0;
  }

  const GridOptions& options_;
  const GridSearchOptions& search_;
  const std::string best_output_;
  const SearchFolder folder_;
  const std::vector<std::string> stages_;
  std::vector<std::vector<Trial>> trials_;  // the runs of each trial
  std::set<int> retries_;                   // trials that failed before this process began
  int busy_ = 0;                            // trials of other processes, when Take looked last
  TrialRunner runner_;
  Progress progress_{"Training", "trials", options_.trials, Progress::InLog::kNothing};
};

}  // namespace

int RunSearch(const Grid& grid, const GridOptions& options, const GridSearchOptions& search) {
  RequireOneBatch(grid, search);
  return SearchWorker(grid, options, search).Run();
}

int RunSweep(const Grid& grid, const GridOptions& options, GridSearchOptions search) {
  if (!search.max_wall.empty() && search.max_wall != "none") {
    search.deadline = RunDeadline(search.max_wall, search.stop_exit_code);
  }
  return options.trials > 0 ? RunSearch(grid, options, search) : RunTrials(grid, options, search);
}

}  // namespace trainer
