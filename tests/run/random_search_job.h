#pragma once
// A random search whose runs are not trained, for tests.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/run/search/random_search.h"
#include "trainer/run/until.h"

namespace trainer {

// Returns the value of "--name=value" in the arguments; "" without it.
inline std::string FlagIn(const std::vector<std::string>& words, const std::string& name) {
  for (const std::string& word : words) {
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  }
  return "";
}

// Replaces `trainer train`: records its arguments and writes the log and the metrics of a run of 90
// iterations. The trial's number determines the accuracy.
class FakeTraining {
 public:
  ExitStatus operator()(const std::vector<std::string>& words, const std::string& log) {
    const std::string folder = FlagIn(words, "--run"), until = FlagIn(words, "--until");
    const std::string name = std::filesystem::path(folder).filename();
    const std::lock_guard lock(mutex_);
    calls.push_back(until.empty() ? name : Join(name, " until ", until));
    last_words = words;
    WriteText(log, ReadText(log) + "I0101 a line\n");
    const int code = codes.contains(name) ? codes[name] : 0;
    if (code != 0 && code != 80) {
      WriteText(log, ReadText(log) + "error: it failed\n");
      return {code};
    }
    const int last = until.empty() ? 90 : UntilIter(until, 90);
    const int iter = early_ends.contains(name) ? early_ends[name] : last;
    const std::string scores =
        Join(R"({"event": "train", "iter": )", iter, R"(, "loss": 0.5})", "\n",
             R"({"event": "test", "iter": )", iter, R"(, "net": 0, "outputs": {"accuracy": )",
             accuracies.contains(name) ? accuracies[name] : 0.5, "}}\n");
    WriteText(folder + "/metrics.jsonl",
              Join(R"({"event": "start", "iter": 0, "max_iter": 90, "net": "", "records": 0})",
                   "\n", silent ? "" : scores, R"({"event": "end", "iter": )", iter,
                   R"(, "stopped_early": false})", "\n"));
    return {code};
  }

  std::vector<std::string> calls;            // "trial_0001 until 1/9"
  std::vector<std::string> last_words;       // of the last call
  std::map<std::string, double> accuracies;  // by the name of the run's folder
  std::map<std::string, int> codes;          // exit codes other than 0
  std::map<std::string, int> early_ends;     // iterations at which `patience` ends runs
  bool silent = false;                       // no test and no loss

 private:
  std::mutex mutex_;
};

class RandomSearchTest : public testing::Test {
 protected:
  RandomSearchTest() {
    folder_.Write("net.prototxt", R"(
layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 } data_filler { type: "gaussian" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }
)");
    options_.solver = folder_.Write(
        "solver.prototxt",
        Join("net: \"", folder_ / "net.prototxt", "\" snapshot_prefix: \"", folder_ / "snap",
             "\" base_lr: 0.01 lr_policy: \"poly\" power: 1 momentum: 0.9 display: 1 ",
             "random_seed: 3 solver_mode: CPU max_iter: 18"));
    options_.assignments = {"base_lr=log:0.001..0.1"};
    options_.trials = 4;
    search_.start = [this](const auto& words, const auto& log) { return training_(words, log); };
  }

  int Run() { return RunSearch(LoadGrid(options_), options_, search_); }
  std::string Table() { return ToText(ReadSearch(out_)); }
  // Runs the search and returns the runs that were trained.
  std::vector<std::string> Calls() {
    training_.calls.clear();
    EXPECT_EQ(Run(), 0);
    return training_.calls;
  }
  bool Exists(const std::string& name) const { return std::filesystem::exists(out_ + "/" + name); }
  std::pair<ErrorCode, std::string> Refusal() {
    return ErrorOf([&] { LoadGrid(options_); });
  }

  const TempFolder folder_;
  const std::string out_ = folder_ / "snap_search";
  GridOptions options_;
  GridSearchOptions search_;
  FakeTraining training_;
};

}  // namespace trainer
