#include "trainer/inference/evaluate/evaluation_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Writes a run with tests and snapshots at iterations 10 and 20; the first test is the better one.
class EvaluationTargetTest : public testing::Test {
 protected:
  EvaluationTargetTest() {
    std::filesystem::create_directory(run_);
    WriteText(run_ + "/solver.prototxt",
              "net_param { layer { name: 'd' type: 'DummyData' top: 'x' dummy_data_param { shape { "
              "dim: 2 } } } } test_iter: 3 test_interval: 10 base_lr: 1 lr_policy: 'fixed' "
              "max_iter: 20");
    WriteMetrics(true);
  }
  void WriteMetrics(bool snapshots) const {
    std::string lines = R"({"event": "start", "iter": 0})"
                        "\n";
    for (const char* iter : {"10", "20"}) {
      const std::string file = folder_ / (std::string("snap_iter_") + iter + ".caffemodel");
      lines += std::string(R"({"event": "test", "iter": )") + iter +
               R"(, "net": 0, "outputs": {"accuracy": )" + (iter[0] == '1' ? "0.9" : "0.5") +
               "}}\n";
      if (!snapshots) continue;
      WriteText(file, "weights");
      lines += std::string(R"({"event": "snapshot", "iter": )") + iter + R"(, "model": ")" + file +
               "\"}\n";
    }
    WriteText(run_ + "/metrics.jsonl", lines);
  }
  EvaluationTarget Resolve(std::vector<std::string> weights = {}) const {
    return ResolveEvaluationTarget({.model = {}, .weights = std::move(weights), .run = run_});
  }
  void ExpectRefused(const EvaluationTargetOptions& options, ErrorCode code,
                     const std::string& part) const {
    const auto [thrown, message] = ErrorOf([&] { ResolveEvaluationTarget(options); });
    EXPECT_EQ(thrown, code);
    EXPECT_THAT(message, HasSubstr(part));
  }

  TempFolder folder_;
  std::string run_ = folder_ / "run";
};

TEST_F(EvaluationTargetTest, ARunHasTheWeightsOfItsBestTest) {
  const LogCollector log;
  const EvaluationTarget target = Resolve();
  EXPECT_THAT(target.weights, ElementsAre(folder_ / "snap_iter_10.caffemodel"));
  EXPECT_EQ(target.run, run_);
  EXPECT_EQ(target.net().layers.size(), 1u);
  EXPECT_EQ(target.state.phase(), caffe::TEST);
  EXPECT_THAT(log.lines, Contains(HasSubstr("Testing the weights of the best test of the run, "
                                            "accuracy 0.9 at iteration 10: ")));
}

TEST_F(EvaluationTargetTest, TheNewestWeightsReplaceThoseOfALostBestTest) {
  std::filesystem::remove(folder_ / "snap_iter_10.caffemodel");
  const LogCollector log;
  EXPECT_THAT(Resolve().weights, ElementsAre(folder_ / "snap_iter_20.caffemodel"));
  EXPECT_THAT(log.lines, Contains(HasSubstr("there is no snapshot of the best test of the run")));
}

TEST_F(EvaluationTargetTest, WeightsThatAreNewerThanTheRunAreReported) {
  const std::string lines = ReadText(run_ + "/metrics.jsonl");
  const auto is_reported = [&](const std::string& end_seconds) {
    WriteText(run_ + "/metrics.jsonl", lines + R"({"event": "end", "iter": 20, "time": )" +
                                           end_seconds + ", \"stopped_early\": false}\n");
    const LogCollector log;
    Resolve();
    return std::ranges::any_of(log.lines, [](const std::string& line) {
      return line.find("If another run with the same snapshot_prefix wrote it") != line.npos;
    });
  };
  EXPECT_TRUE(is_reported("1000000000"));   // in 2001
  EXPECT_FALSE(is_reported("4000000000"));  // in 2096
}

TEST_F(EvaluationTargetTest, GivenWeightsWin) {
  const std::string other = folder_.Write("other.caffemodel", "weights");
  EXPECT_THAT(Resolve({other}).weights, ElementsAre(other));
}

TEST_F(EvaluationTargetTest, RefusesWhatIsMissingOrContradictory) {
  ExpectRefused({.model = {.file = "net.prototxt"}, .weights = {}, .run = run_}, ErrorCode::kUsage,
                "--run and --model cannot both be given");
  ExpectRefused({}, ErrorCode::kUsage, "'trainer test' needs --model=FILE, or --run=DIR");
  ExpectRefused({.model = {.file = "net.prototxt"}, .weights = {}, .run = ""}, ErrorCode::kUsage,
                "'trainer test' needs --weights=FILE");
  ExpectRefused({.model = {.file = "net.prototxt"}, .weights = {folder_ / "none"}, .run = ""},
                ErrorCode::kNoInput, "none");
  ExpectRefused({.model = {}, .weights = {}, .run = folder_ / "absent"}, ErrorCode::kNoInput,
                "absent");
  WriteMetrics(false);
  ExpectRefused({.model = {}, .weights = {}, .run = run_}, ErrorCode::kNoInput,
                "has not saved a snapshot yet");
  WriteMetrics(true);
  const std::string solver = ReadText(run_ + "/solver.prototxt");
  WriteText(run_ + "/solver.prototxt",
            solver.substr(0, solver.find("test_iter")) + solver.substr(solver.find("base_lr")));
  ExpectRefused({.model = {}, .weights = {}, .run = run_}, ErrorCode::kConfig,
                "this run has no test net");
}

TEST_F(EvaluationTargetTest, WarnsOfClassesThatNobodyCounted) {
  const std::string model = folder_ / "net.prototxt";
  WriteText(
      model,
      "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: 2 "
      "dim: 2 } shape { dim: 2 } } }\n"
      "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'y' top: 'l'\n"
      "loss_param { class_weight_power: 1 } }");
  const std::string weights = folder_ / "snap_iter_10.caffemodel";
  const LogCollector log;
  ResolveEvaluationTarget({.model = {.file = model}, .weights = {weights}, .run = ""});
  EXPECT_THAT(log.lines,
              Contains(model + ":3:14: layer 'l' counts all classes equally in this test, because "
                               "only training counts the records of the classes; --run=DIR tests "
                               "with the weights of a run"));
}

}  // namespace
}  // namespace trainer
