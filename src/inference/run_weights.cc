#include "trainer/inference/run_weights.h"

#include <glog/logging.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {

std::string ResolveRunPath(const std::string& folder, const std::string& name) {
  if (name.empty() || Exists(name)) return name;
  return JoinPath(RunDirectory(folder).ReadInfo().folder, name);
}

namespace {

// Warns if the file was written after the run had ended, as by another run with the same
// snapshot_prefix.
void WarnOfOtherRun(const RunMetrics& history, const std::string& folder, const std::string& file) {
  constexpr double kMinute = 60;  // the last snapshot follows the last line of the record
  struct stat info {};
  if (!history.ended || history.last_time <= 0 || stat(file.c_str(), &info) != 0) return;
  if (static_cast<double>(info.st_mtim.tv_sec) < history.last_time + kMinute) return;
  LOG(WARNING) << EscapeControl(Join(
      file, " was written after the run ", folder,
      " had ended. If another run with the same snapshot_prefix wrote it, these are the weights "
      "of that run"));
}

}  // namespace

std::string ChooseRunWeights(const std::string& folder, const std::string& doing) {
  if (!IsDirectory(folder)) ThrowNotARun(folder);
  const RunMetrics history = ReadRunMetrics(folder);
  if (history.weights.empty()) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                "this run has not saved a snapshot yet; give the weights with --weights=FILE");
  }
  const auto newest = std::ranges::find_if(
      history.weights.rbegin(), history.weights.rend(),
      [&](const auto& saved) { return Exists(ResolveRunPath(folder, saved.second)); });
  if (newest == history.weights.rend()) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                EscapeControl(Join("the snapshots of this run are not there, the newest was ",
                                   history.weights.back().second,
                                   "; give the weights with --weights=FILE")));
  }
  const int64_t newest_iter = newest->first;
  std::string file = ResolveRunPath(folder, newest->second);
  if (const std::optional<BestTest> best = BestTestOf(history, BestOutputOf(folder))) {
    const std::string what = Join("the best test of the run, ", best->output, " ",
                                  static_cast<float>(best->value), " at iteration ", best->iter);
    const std::string of_best = ResolveRunPath(folder, best->weights);
    if (!of_best.empty() && Exists(of_best)) {
      LOG(INFO) << EscapeControl(Join(doing, " the weights of ", what, ": ", of_best));
      file = of_best;
    } else {
      LOG(WARNING) << EscapeControl(
          Join("there is no snapshot of ", what, "; ", LowerCase(doing),
               " the newest one instead, of iteration ", newest_iter,
               " (to keep the best: set keep_best: 1, with a snapshot at each test)"));
    }
  } else {
    LOG(INFO) << EscapeControl(Join(doing,
                                    " the newest weights of the run, which has no tests, of "
                                    "iteration ",
                                    newest_iter, ": ", file));
  }
  WarnOfOtherRun(history, folder, file);
  return file;
}

}  // namespace trainer
