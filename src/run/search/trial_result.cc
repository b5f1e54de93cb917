#include "trainer/run/search/trial_result.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/monitor/run_metrics.h"
#include "trainer/run/jobs/job_script.h"

namespace trainer {
namespace {

// Sets the exit code of the last start and the last error from the log at `path`. Lines after an
// exit code belong to a later start, which then has no exit code yet.
void ReadEnd(const std::string& path, TrialResult* result) {
  constexpr std::string_view kError = "error: ";
  std::ifstream log(path);
  for (std::string line; std::getline(log, line);) {
    result->exit_code.reset();  // a later start follows
    if (line.starts_with(kExitLine)) {
      int code = 0;
      const char* const first = line.data() + sizeof kExitLine - 1;
      if (std::from_chars(first, line.data() + line.size(), code).ec == std::errc()) {
        result->exit_code = code;
      }
    } else if (line.starts_with(kError)) {
      result->problem = line.substr(kError.size());
    }
  }
}

// Sets the best and the last value of the output that trials are compared by; nothing without
// tests.
void ReadTests(const RunMetrics& history, const std::string& best_output, TrialResult* result) {
  const std::optional<BestTest> best = BestTestOf(history, best_output);
  if (!best) return;
  result->output = best->output;
  result->lower_is_better = best->lower_is_better;
  result->best = TrialResult::Score{static_cast<float>(best->value), static_cast<int>(best->iter)};
  for (const MetricRow& row : history.tests[0]) {
    for (const auto& [name, value] : row.outputs) {
      if (name != best->output) continue;
      result->last = TrialResult::Score{static_cast<float>(value), static_cast<int>(row.iter)};
    }
  }
}

}  // namespace

bool TrialResult::HasDiverged() const {
  return exit_code == static_cast<int>(ErrorCode::kDiverged);
}

bool TrialResult::IsFinished() const { return exit_code == 0 || HasDiverged(); }

std::string TrialResult::State() const {
  if (!begun) return "not begun";
  if (!exit_code) return "running or killed";
  if (*exit_code == 0) return "finished";
  if (HasDiverged()) return "diverged";
  if (*exit_code == static_cast<int>(ErrorCode::kStopped)) return "stopped";
  return Join("failed (", *exit_code, ")");
}

TrialResult ReadTrialResult(const Trial& trial, const std::string& best_output) {
  TrialResult result;
  if (IsMissing(trial.log)) return result;
  static_cast<void>(FileSize(trial.log));  // it throws clearer errors than a stream
  result.begun = true;
  ReadEnd(trial.log, &result);
  const std::string metrics = JoinPath(trial.folder, kMetricsName);
  if (IsMissing(metrics)) return result;  // the run ended before its first iteration
  const RunMetrics history = ReadMetrics(metrics);
  // The last line may be about the GPU at an earlier iteration.
  const int64_t saved = history.weights.empty() ? 0 : history.weights.back().first;
  result.iter = static_cast<int>(std::max(history.last_iter, saved));
  result.max_iter = static_cast<int>(history.max_iter);
  if (history.end_loss) {
    result.loss = static_cast<float>(*history.end_loss);
  } else if (!history.loss.empty()) {
    result.loss = static_cast<float>(history.loss.back().value);  // it still runs or was killed
  }
  ReadTests(history, best_output, &result);
  return result;
}

void AppendExitCode(const Trial& trial, int code) {
  FileOps& ops = FileOps::Posix();
  FileHandle file(ops, ops.Open(trial.log, O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
  const std::string line = Join(kExitLine, code, "\n");
  const bool written = file.get() >= 0 && ops.Write(file.get(), line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  if (!written || file.Close() != 0) {
    ThrowFileError(FileUse::kOutput, "write to a log", trial.log, errno);
  }
}

}  // namespace trainer
