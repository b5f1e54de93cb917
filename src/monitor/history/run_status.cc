#include "trainer/monitor/run_status.h"

#include <algorithm>
#include <chrono>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/monitor/live_view.h"
#include "trainer/monitor/run_charts.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/monitor/test_score.h"

namespace trainer {
namespace {

// Returns "finished" or "stopped" if the metrics have an end. Otherwise the run is "running" if its
// process holds the lock of the snapshots, and "dead" if not; "unknown" without such a lock.
std::string RunStateOf(const RunMetrics& history, const RunInfo& info) {
  if (history.ended) return history.stopped_early ? "stopped" : "finished";
  const bool known = !info.snapshot_prefix.empty() && info.process > 0 && !info.host.empty();
  if (!known || !info.saves) return "unknown";  // a run that saves nothing has no lock
  return HoldsSnapshotLock(info.host, info.process, info.snapshot_prefix) ? "running" : "dead";
}

// Returns "-" if the log does not say how many iterations the run has.
std::string PercentDone(const RunMetrics& run) {
  if (run.max_iter <= 0) return "-";
  return Join(100 * run.last_iter / run.max_iter);
}

// Returns up to two outputs of the last test of the first test net: "accuracy 0.98 at 500".
std::string TestText(const RunMetrics& run) {
  if (run.tests.empty() || run.tests[0].empty()) return "-";
  const MetricRow& row = run.tests[0].back();
  std::string text;
  constexpr size_t kMost = 2;
  for (size_t i = 0; i < std::min(row.outputs.size(), kMost); ++i) {
    text += Join(i == 0 ? "" : ", ", row.outputs[i].first, " ",
                 static_cast<float>(row.outputs[i].second));
  }
  return EscapeControl(Join(text, " at ", row.iter));
}

// Returns "accuracy 0.98 at 500", or "-" without a test.
std::string BestText(const RunStatus& status) {
  if (!status.best) return "-";
  return EscapeControl(Join(status.best->output, " ", static_cast<float>(status.best->value),
                            " at ", status.best->iter));
}

// Returns the run with the best test; null if there is only one run or their scores differ in kind.
const RunStatus* BestOf(const std::vector<RunStatus>& runs) {
  const RunStatus* best = nullptr;
  for (const RunStatus& run : runs) {
    if (!run.best) continue;
    if (best != nullptr && best->best->output != run.best->output) return nullptr;
    const TestScore score{run.best->output, run.best->lower_is_better};
    if (best == nullptr ||
        score.Better(static_cast<float>(run.best->value), static_cast<float>(best->best->value))) {
      best = &run;
    }
  }
  return runs.size() > 1 ? best : nullptr;
}

}  // namespace

std::vector<std::string> FindRuns(const std::string& folder) {
  if (!IsDirectory(folder)) ThrowNotARun(folder);
  std::vector<std::string> runs = RunsIn(folder);
  if (runs.empty()) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                Join("no run found: this folder and its subfolders have no ", kMetricsName,
                     "; 'trainer train --run=DIR' writes this file"));
  }
  return runs;
}

RunStatus StatusOfRun(const std::string& folder) {
  RunStatus status;
  status.history = ReadRunMetrics(folder);
  const RunMetrics& run = status.history;
  status.best = BestTestOf(run, BestOutputOf(folder));
  const RunInfo info = RunDirectory(folder).ReadInfo();
  status.state = RunStateOf(run, info);
  status.host = info.host;
  if (info.process > 0) status.process = Join(info.process);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  if (run.last_time > 0) status.silent = std::max(0.0, now.count() - run.last_time);
  const auto done = static_cast<double>(run.last_iter - run.first_iter);
  if (status.state == "running" && done > 0) {
    const double each = (run.seconds - run.start_seconds) / done;
    status.left = std::max(0.0, each * static_cast<double>(run.max_iter - run.last_iter) -
                                    std::max(status.silent, 0.0));
  }
  return status;
}

Json ToJson(const RunStatus& status) {
  const RunMetrics& run = status.history;
  Json json =
      Json::Object()
          .Set("run", run.path)
          .Set("state", status.state)
          .Set("net", run.net)
          .Set("iter", run.last_iter)
          .Set("max_iter", run.max_iter)
          .Set("seconds", run.seconds)
          .Set("loss", run.loss.empty() ? Json() : Json(run.loss.back().value))
          .Set("images_per_second",
               run.images_per_second.empty() ? Json() : Json(run.images_per_second.back().value))
          .Set("seconds_left", status.left < 0 ? Json() : Json(status.left))
          .Set("seconds_silent", status.silent < 0 ? Json() : Json(status.silent))
          .Set("host", status.host)
          .Set("process", status.process)
          .Set("model", run.model);
  Json test = Json::Object();
  if (!run.tests.empty() && !run.tests[0].empty()) {
    for (const auto& [name, value] : run.tests[0].back().outputs) test.Set(name, value);
  }
  json.Set("test", std::move(test));
  if (!run.tests.empty() && !run.tests[0].empty()) json.Set("test_iter", run.tests[0].back().iter);
  if (status.best) {
    json.Set("best", Json::Object()
                         .Set("output", status.best->output)
                         .Set("value", status.best->value)
                         .Set("iter", status.best->iter)
                         .Set("weights", status.best->weights));
  }
  return json;
}

std::string ToText(const std::vector<RunStatus>& runs) {
  Table table({"run", "state", "iteration", "of", "done, %", "loss", "last test", "best test",
               "left", "updated ago"});
  table.KeepWhole({"last test", "best test"})
      .LeaveOut({"done, %", "updated ago", "loss", "last test"});
  const RunStatus* const best = BestOf(runs);
  for (const RunStatus& status : runs) {
    const RunMetrics& run = status.history;
    table.Add({EscapeControl(NameOf(run)), status.state, Join(run.last_iter), Join(run.max_iter),
               PercentDone(run),
               run.loss.empty() ? "-" : Join(static_cast<float>(run.loss.back().value)),
               TestText(run), BestText(status), status.left < 0 ? "-" : ClockText(status.left),
               status.silent < 0 ? "-" : ClockText(status.silent)});
    if (&status == best) table.MarkLastRow();
  }
  return table.ToString();
}

}  // namespace trainer
