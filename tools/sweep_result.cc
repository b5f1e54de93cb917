// What became of a sweep's run: its numbers are in metrics.jsonl, how it ended in the log.

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <fstream>

#include "sweep_runs.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/history.h"
#include "trainer/monitor/run_folder.h"
#include "trainer/run/jobs/job_script.h"

namespace trainer {
namespace {

// The exit code that closes each start, and the last error.
void ReadEnd(const std::string& path, SweepResult* result) {
  constexpr std::string_view kError = "error: ";
  std::ifstream log(path);
  for (std::string line; std::getline(log, line);) {
    result->exit_code.reset();  // of an earlier start
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

void ReadTests(const RunHistory& history, const std::string& best_output, SweepResult* result) {
  const std::optional<BestTest> best = BestTestOf(history, best_output);
  if (!best) return;
  result->output = best->output;
  result->lower_is_better = best->lower_is_better;
  result->best = SweepResult::Score{static_cast<float>(best->value), static_cast<int>(best->iter)};
  for (const HistoryRow& row : history.tests[0]) {
    for (const auto& [name, value] : row.outputs) {
      if (name != best->output) continue;
      result->last = SweepResult::Score{static_cast<float>(value), static_cast<int>(row.iter)};
    }
  }
}

}  // namespace

bool SweepResult::IsOver() const {
  return exit_code == 0 || exit_code == static_cast<int>(ErrorCode::kDiverged);
}

std::string SweepResult::State() const {
  if (!begun) return "not begun";
  if (!exit_code) return "running or killed";
  if (*exit_code == 0) return "finished";
  if (*exit_code == static_cast<int>(ErrorCode::kDiverged)) return "diverged";
  if (*exit_code == static_cast<int>(ErrorCode::kStopped)) return "stopped";
  return Join("failed (", *exit_code, ")");
}

SweepResult ReadResult(const SweepRun& run, const std::string& best_output) {
  SweepResult result;
  if (IsMissing(run.log)) return result;
  static_cast<void>(FileSize(run.log));  // whose errors say more than a stream's
  result.begun = true;
  ReadEnd(run.log, &result);
  const std::string metrics = JoinPath(run.folder, kMetricsName);
  if (IsMissing(metrics)) return result;  // it ended before its first iteration
  const RunHistory history = ReadMetrics(metrics);
  result.iter = static_cast<int>(history.last_iter);
  if (!history.loss.empty()) result.loss = static_cast<float>(history.loss.back().value);
  ReadTests(history, best_output, &result);
  return result;
}

void NoteExit(const SweepRun& run, int code) {
  FileOps& ops = FileOps::Posix();
  FileHandle file(ops, ops.Open(run.log, O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
  const std::string line = Join(kExitLine, code, "\n");
  const bool written = file.get() >= 0 && ops.Write(file.get(), line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  if (!written || file.Close() != 0) {
    ThrowFileError(FileUse::kOutput, "write to a log", run.log, errno);
  }
}

}  // namespace trainer
