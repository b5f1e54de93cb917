#include "trainer/inference/run_weights.h"

#include <glog/logging.h>

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

std::string ChooseRunWeights(const std::string& folder, const std::string& doing) {
  if (!IsDirectory(folder)) ThrowNotARun(folder);
  const RunMetrics history = ReadRunMetrics(folder);
  if (history.weights.empty()) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                "this run has not saved a snapshot yet; give the weights with --weights=FILE");
  }
  const auto& [newest_iter, newest] = history.weights.back();
  const std::optional<BestTest> best = BestTestOf(history, BestOutputOf(folder));
  if (!best) return ResolveRunPath(folder, newest);
  const std::string what = Join("the best test of the run, ", best->output, " ",
                                static_cast<float>(best->value), " at iteration ", best->iter);
  const std::string file = ResolveRunPath(folder, best->weights);
  if (!file.empty() && Exists(file)) {
    LOG(INFO) << EscapeControl(Join(doing, " the weights of ", what, ": ", file));
    return file;
  }
  LOG(WARNING) << EscapeControl(
      Join("there is no snapshot of ", what, "; ", LowerCase(doing),
           " the newest one instead, of iteration ", newest_iter,
           " (to keep the best: set keep_best: 1, with a snapshot at each test)"));
  return ResolveRunPath(folder, newest);
}

}  // namespace trainer
