#include "trainer/run/search/grid_search.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "search/search_space.h"
#include "search/trial_runner.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/alternatives.h"
#include "trainer/monitor/test_score.h"
#include "trainer/parallel/environment.h"
#include "trainer/run/device.h"
#include "trainer/run/jobs/job_resources.h"
#include "trainer/run/search/trial_result.h"

namespace trainer {
namespace {

// Returns "finished, best accuracy 0.9 at iteration 500", or the state and the error of a trial.
std::string Summary(const TrialResult& result) {
  std::string text = result.State();
  if (result.best) {
    text += Join(", best ", EscapeControl(result.output), " ", result.best->value, " at iteration ",
                 result.best->iter);
  }
  if (!result.IsFinished() && !result.problem.empty()) text += ": " + EscapeControl(result.problem);
  return text;
}

// One grid search. Run trains the trials one after the other and returns what RunTrials returns.
class GridSearch {
 public:
  GridSearch(const Grid& grid, const GridOptions& options, const GridSearchOptions& search)
      : grid_(grid), options_(options), search_(search), runner_(options, search) {}

  // Trains the trials in order, skipping finished ones, and reports each. Returns early if one is
  // stopped.
  int Run() {
    for (size_t i = 0; i < grid_.trials.size(); ++i) {
      const Trial& trial = grid_.trials[i];
      const std::string name = Join("Run ", i + 1, " of ", grid_.trials.size(), ", ", trial.Name());
      PrepareFolder(options_, trial);
      TrialResult result = ReadTrialResult(trial, BestOutput());
      if (result.IsFinished()) {
        progress_.Skip(1);
        progress_.Say(
            Join(name, ": ", result.State(), " before; to run it again, remove ", trial.folder));
      } else {
        progress_.SetDoing("Training " + trial.Name());
        LOG(INFO) << name << ": its log is " << EscapeControl(trial.log);
        const ExitStatus status = runner_.Train(trial);
        if (TrialRunner::IsStop(status)) {
          progress_.Say(Join(name, ": ", TrialRunner::DescribeStop(status)));
          return search_.stop_exit_code;
        }
        result = ReadTrialResult(trial, BestOutput());
        progress_.Add(1);
        progress_.Say(Join(name, ": ", Summary(result)));
      }
      CountOutcome(result);
    }
    if (diverged_ == grid_.trials.size()) return static_cast<int>(ErrorCode::kDiverged);
    return failure_;
  }

 private:
  std::string BestOutput() const { return ScoredOutput(grid_.spec.proto); }

  // Notes a diverged or failed trial for the exit code of the search.
  void CountOutcome(const TrialResult& result) {
    const int code = result.exit_code.value_or(0);
    diverged_ += code == static_cast<int>(ErrorCode::kDiverged) ? 1 : 0;
    if (failure_ == 0 && !result.IsFinished()) failure_ = code;
  }

  const Grid& grid_;
  const GridOptions& options_;
  const GridSearchOptions& search_;
  TrialRunner runner_;
  Progress progress_{"Training", "runs", static_cast<int64_t>(grid_.trials.size()),
                     Progress::InLog::kNothing};
  int failure_ = 0;
  size_t diverged_ = 0;
};

// Throws kUsage for options that contradict each other.
void RequireFittingOptions(const GridOptions& options) {
  constexpr int kFewestTrials = 9;  // a third of a third of them is one
  const auto refuse = [](const std::string& message) { throw Error(ErrorCode::kUsage, message); };
  if (ReadLaunchEnvironment().count > 1) {
    refuse(
        "a sweep starts its runs itself: start it without mpirun; for runs with several ranks "
        "give --ranks, or --system=slurm");
  }
  if (options.folder.ends_with('/')) {
    refuse(Join("--out=", options.folder, ": leave out the last '/'"));
  }
  for (const std::string& assignment : options.assignments) {
    if (options.seeds > 0 && assignment.starts_with("random_seed=")) {
      refuse(
          "--seeds and --set random_seed cannot both be given: --seeds=3 trains with the seeds "
          "1, 2 and 3");
    }
    if (options.trials == 0 && IsDrawn(assignment)) {
      refuse(EscapeControl(
          Join("--set ", assignment, ": give the number of values to draw with --trials=N")));
    }
  }
  if (options.stops_early && options.trials == 0) {
    refuse("--stop=asha works with --trials=N: a grid trains each combination to its end");
  }
  if (options.stops_early && options.trials < kFewestTrials) {
    refuse(Join("--stop=asha needs --trials=", kFewestTrials, " or more: a third of ",
                kFewestTrials, " trials continues twice, so one of them reaches its end"));
  }
}

// Returns the largest batch of the trials, which needs the most memory; "" without any.
std::string LargestBatch(const std::vector<Trial>& trials) {
  return std::ranges::max_element(
             trials, {},
             [](const Trial& trial) { return ParseNumber<uint32_t>(trial.batch).value_or(0); })
      ->batch;
}

// Returns the arguments that each task of a job array gives to the program. `command` is the
// command that prints the script; this removes the flags that describe the script.
std::vector<std::string> WorkerCommand(const std::vector<std::string>& command) {
  std::vector<std::string> words(command.begin() + 1, command.end());
  std::erase_if(words, [](const std::string& word) {
    constexpr std::string_view kOfScript[] = {
        "--system=", "--time=", "--partition=", "--cores=", "--array_limit="};
    return std::ranges::any_of(kOfScript, [&](auto flag) { return word.starts_with(flag); });
  });
  return words;
}

}  // namespace

Grid LoadGrid(const GridOptions& options) {
  RequireFittingOptions(options);
  std::optional<SearchSpace> space;
  Trial first;
  if (options.trials > 0) {
    space.emplace(options.assignments);
    first = space->Draw(static_cast<uint64_t>(options.seed), 1);
  } else {
    for (const std::string& assignment : options.assignments) {
      AddChange(Alternatives(assignment)[0], &first);
    }
  }
  Grid grid{LoadWithChanges(options, first.changes), {}, options.folder};
  const std::string& prefix = grid.spec.proto.snapshot_prefix();
  if (grid.folder.empty()) grid.folder = prefix + (space ? "_search" : "_sweep");
  grid.trials = space ? DrawTrials(*space, static_cast<uint64_t>(options.seed), options.trials,
                                   options.seeds, grid.folder, prefix)
                      : GridTrials(options.assignments, grid.folder, prefix, options.seeds);
  for (const Trial& trial : grid.trials) {
    if (trial.seed <= 1) static_cast<void>(LoadTrial(options, trial));
  }
  SetBatch(LargestBatch(grid.trials), &grid.spec);
  return grid;
}

int RunTrials(const Grid& grid, const GridOptions& options, const GridSearchOptions& search) {
  RequireOneBatch(grid, search);
  return GridSearch(grid, options, search).Run();
}

void SetTaskGpu(const std::string& id, JobSpec* job) {
  job->gpu = !id.empty();
  if (!job->gpu || RequestedGpu({.gpu = id}).value_or(0) == 0) return;
  throw Error(ErrorCode::kUsage, "--gpu: in a Slurm task, its GPU has the number 0; give --gpu=0");
}

void DescribeGrid(const Grid& grid, const GridOptions& options, int processes, JobSpec* job) {
  job->solver = options.solver;
  job->name = JobName(options.solver);
  job->node_cores = CoresOfLargestNode(job->partition);
  EstimateJobResources(grid.spec, job, processes);
  if (options.trials == 0) {
    for (const Trial& trial : grid.trials) {
      job->tasks.push_back({trial.folder, trial.changes, trial.batch});
    }
    return;
  }
  const int most = std::exchange(job->array_limit, 0);
  job->workers = most > 0 ? std::min(most, options.trials) : options.trials;
  job->worker = WorkerCommand(job->command);
}

}  // namespace trainer
