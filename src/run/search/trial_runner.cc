#include "search/trial_runner.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "batch_size.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/config/overrides.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/run/search/trial_result.h"

namespace trainer {
namespace {

constexpr int kStopCode = static_cast<int>(ErrorCode::kStopped);

}  // namespace

SolverSpec LoadWithChanges(const GridOptions& options, const std::vector<std::string>& changes) {
  Overrides overrides(changes);
  return LoadSolver(options.solver, options.state, &overrides);
}

void SetBatch(const std::string& batch, SolverSpec* spec) {
  if (batch.empty()) return;
  const WarningsOnly warnings_only;
  ApplyBatchSize(batch, {}, spec);
}

SolverSpec LoadTrial(const GridOptions& options, const Trial& trial) {
  try {
    SolverSpec spec = LoadWithChanges(options, trial.changes);
    SetBatch(trial.batch, &spec);
    return spec;
  } catch (const Error& error) {
    throw Error(error.code(), Join(error.what(), " (the run with ", trial.Name(), ")"));
  }
}

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

void RequireOneBatch(const Grid& grid, const GridSearchOptions& search) {
  const bool varies = std::ranges::any_of(grid.trials, [](const auto& t) { return t.batch != ""; });
  for (const std::string& flag : search.train_flags) {
    if (!varies || !flag.starts_with("--batch=")) continue;
    throw Error(ErrorCode::kUsage,
                "--batch and --set batch cannot both be given: leave out --batch");
  }
}

TrialRunner::TrialRunner(const GridOptions& options, const GridSearchOptions& search)
    : options_(options), search_(search) {
  if (!search_.start) child_.emplace();
}

ExitStatus TrialRunner::Train(const Trial& trial, const std::string& until) {
  std::vector<std::string> words = {"train", Join("--solver=", options_.solver), "--resume=auto",
                                    "--run=" + trial.folder};
  words.insert(words.end(), search_.train_flags.begin(), search_.train_flags.end());
  const std::vector<std::string> flags = trial.Flags();
  words.insert(words.end(), flags.begin(), flags.end());
  if (!until.empty()) words.push_back("--until=" + until);
  // A run whose sweep was killed saves its last snapshot for some seconds after that.
  if (options_.trials > 0) words.push_back("--lock_wait=120");
  if (search_.deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(
        *search_.deadline - std::chrono::steady_clock::now());
    if (left.count() < 1) return {kStopCode};
    words.push_back(Join("--max_wall=", left.count(), "s"));
  }
  if (child_ && child_->PendingStop() != 0) return {kStopCode};
  const ExitStatus status =
      child_ ? child_->Run(words, trial.log) : search_.start(words, trial.log);
  AppendExitCode(trial, status.signal == 0 ? status.code : 128 + status.signal);
  return status;
}

bool TrialRunner::IsStop(const ExitStatus& status) {
  return status.code == kStopCode || status.forwarded;
}

std::string TrialRunner::DescribeStop(const ExitStatus& status) {
  const std::string how = status.signal == 0 ? "stopped" : Join("ended by signal ", status.signal);
  return how + "; to resume, give the same command again";
}

}  // namespace trainer
