#include "trainer/run/search/grid_search.h"

#include <glog/logging.h>

#include <filesystem>
#include <system_error>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/process/child_process.h"
#include "trainer/base/text/text.h"
#include "trainer/config/alternatives.h"
#include "trainer/config/overrides.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/monitor/test_score.h"
#include "trainer/run/jobs/job_resources.h"
#include "trainer/run/search/trial_result.h"

namespace trainer {
namespace {

constexpr int kStopCode = static_cast<int>(ErrorCode::kStopped);

SolverSpec LoadWithChanges(const GridOptions& options, const std::vector<std::string>& changes) {
  Overrides overrides(changes);
  return LoadSolver(options.solver, options.state, &overrides);
}

// Reads the solver with the changes of the trial, and adds the trial's name to errors.
SolverSpec LoadTrial(const GridOptions& options, const Trial& trial) {
  try {
    return LoadWithChanges(options, trial.changes);
  } catch (const Error& error) {
    throw Error(error.code(), Join(error.what(), " (the run with ", trial.Name(), ")"));
  }
}

// Makes the folder of a trial and writes its solver there. If an earlier start has written one,
// throws kCannotCreate unless it is the same.
void PrepareFolder(const GridOptions& options, const Trial& trial) {
  std::error_code error;
  std::filesystem::create_directories(trial.folder, error);
  if (error) {
    throw Error(ErrorCode::kCannotCreate, {trial.folder},
                Join("cannot create this folder: ", error.message()));
  }
  const std::string path = JoinPath(trial.folder, "settings.prototxt");
  const std::string settings = ResolvedText(LoadTrial(options, trial));
  if (IsMissing(path)) return WriteWhole(path, settings);
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  if (ReadFile(path, kMaxBytes) == settings) return;
  throw Error(ErrorCode::kCannotCreate, {path},
              "the folder has a run of another solver or net, or they changed after that run: "
              "give another --out, or remove the folder to run it again");
}

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
      : grid_(grid), options_(options), search_(search) {}

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
        const ExitStatus status = Train(trial);
        if (status.code == kStopCode || status.forwarded) return Stop(name, status);
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

  // Trains one trial in a child process and appends its exit code to its log. Starts nothing and
  // returns kStopCode if the deadline has passed or a stop was asked for.
  ExitStatus Train(const Trial& trial) {
    std::vector<std::string> words = {"train", Join("--solver=", options_.solver), "--resume=auto",
                                      "--run=" + trial.folder};
    words.insert(words.end(), search_.train_flags.begin(), search_.train_flags.end());
    for (const std::string& change : trial.changes) words.insert(words.end(), {"--set", change});
    if (search_.deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::seconds>(
          *search_.deadline - std::chrono::steady_clock::now());
      if (left.count() < 1) return {kStopCode};
      words.push_back(Join("--max_wall=", left.count(), "s"));
    }
    if (child_.PendingStop() != 0) return {kStopCode};
    const ExitStatus status = child_.Run(words, trial.log);
    AppendExitCode(trial, status.signal == 0 ? status.code : 128 + status.signal);
    return status;
  }

  // Reports that the trial was stopped, and returns the exit code of a stopped search.
  int Stop(const std::string& name, const ExitStatus& status) {
    const std::string how =
        status.signal == 0 ? "stopped" : Join("ended by signal ", status.signal);
    progress_.Say(Join(name, ": ", how, "; to resume, give the same command again"));
    return search_.stop_exit_code;
  }

  const Grid& grid_;
  const GridOptions& options_;
  const GridSearchOptions& search_;
  ChildProcess child_;
  Progress progress_{"Training", "runs", static_cast<int64_t>(grid_.trials.size()),
                     Progress::InLog::kNothing};
  int failure_ = 0;
  size_t diverged_ = 0;
};

}  // namespace

Grid LoadGrid(const GridOptions& options) {
  std::vector<std::string> first;
  for (const std::string& assignment : options.assignments) {
    first.push_back(Alternatives(assignment)[0]);
  }
  Grid grid{LoadWithChanges(options, first), {}};
  const std::string& prefix = grid.spec.proto.snapshot_prefix();
  const std::string folder = options.folder.empty() ? prefix + "_sweep" : options.folder;
  grid.trials = GridTrials(options.assignments, folder, prefix);
  for (const Trial& trial : grid.trials) static_cast<void>(LoadTrial(options, trial));
  return grid;
}

int RunTrials(const Grid& grid, const GridOptions& options, const GridSearchOptions& search) {
  return GridSearch(grid, options, search).Run();
}

void DescribeGrid(const Grid& grid, const GridOptions& options, int processes, JobSpec* job) {
  job->solver = options.solver;
  job->name = JobName(options.solver);
  job->node_cores = CoresOfLargestNode(job->partition);
  EstimateJobResources(grid.spec, job, processes);
  for (const Trial& trial : grid.trials) job->tasks.push_back({trial.folder, trial.changes});
}

}  // namespace trainer
