// test_metric: metrics of a test over all its records, on one rank and on several.

#include "test_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rows_run.h"
#include "support/error_of.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// Tests read 26 rows in batches of BATCH.
const std::string kMeasuredNet = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: 4 } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: BATCH } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";
const std::string kAllMetrics =
    "test_metric: 'accuracy' test_metric: 'top_2' test_metric: 'macro_f1' test_metric: 'auc' "
    "test_metric: 'ece' test_metric: 'mcc' ";

class TestMetricsTest : public testing::Test {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("the threads sum arrays of the host"); }

  SolverSpec Spec(const std::string& fields, int batch,
                  const std::string& net = kMeasuredNet) const {
    return folder_.Spec(net, "random_seed: 3 max_iter: 4 test_interval: 2 " + fields, batch);
  }
  static std::vector<float> TestsOf(const SolverSpec& spec, const SolverOptions& options) {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    Solver solver(spec, options, *device, observer);
    EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
    return observer.tests;
  }
  std::vector<float> TestsOfRanks(const std::string& fields, int batch, int ranks,
                                  const std::string& net = kMeasuredNet) {
    std::vector<float> tests;
    const SolverSpec spec = Spec("base_lr: 0 snapshot_after_train: false " + fields, batch, net);
    RunRanks(ranks, true, "", [&](const SolverOptions& options, ThreadGroup& group) {
      const std::vector<float> own = TestsOf(spec, options);
      if (group.rank().rank == 0) tests = own;
    });
    return tests;
  }
  std::string Refusal(const std::string& fields, const std::string& net = kMeasuredNet) {
    return ErrorOf([&] { TestsOf(Spec("base_lr: 0 " + fields, 5, net), {}); }).second;
  }

  RowsFolder folder_;
};

TEST_F(TestMetricsTest, AreReportedAfterTheOutputs) {
  const std::vector<float> tests = TestsOfRanks(kAllMetrics, 26, 1);
  ASSERT_THAT(tests, SizeIs(3 * 7));
  EXPECT_GT(tests[0], 0.5f) << "the loss";
  EXPECT_GE(tests[2], tests[1]) << "top_2 and accuracy";
}

TEST_F(TestMetricsTest, DoNotDependOnTheBatches) {
  const std::vector<float> whole = TestsOfRanks(kAllMetrics, 26, 1);
  for (const int batch : {1, 5, 13, 25}) {
    const std::vector<float> tests = TestsOfRanks(kAllMetrics, batch, 1);
    ASSERT_EQ(tests.size(), whole.size());
    // The rounding of scores depends on the batch size, and decides which equal records auc ties.
    for (size_t i = 0; i < tests.size(); ++i) {
      EXPECT_NEAR(tests[i], whole[i], i % 7 == 4 ? 5e-3f : 2e-6f) << i;
    }
  }
}

// Some cases have full batches that the ranks do not divide equally, and a smaller last batch.
TEST_F(TestMetricsTest, RanksGiveTheNumbersOfOneBitForBit) {
  for (const int batch : {3, 5, 13, 40}) {
    const std::vector<float> one = TestsOfRanks(kAllMetrics, batch, 1);
    for (const int ranks : {2, 4, 7}) {
      EXPECT_THAT(TestsOfRanks(kAllMetrics, batch, ranks), ElementsAreArray(one))
          << ranks << " ranks, batches of " << batch;
    }
  }
}

TEST_F(TestMetricsTest, ATestOfSomeBatchesHasTheirRecords) {
  const std::string fields = kAllMetrics + "test_iter: 3 ";
  EXPECT_THAT(TestsOfRanks(fields, 4, 4), ElementsAreArray(TestsOfRanks(fields, 4, 1)));
}

TEST_F(TestMetricsTest, AResumedRunHasTheSameNumbers) {
  const std::string fields = "base_lr: 0.1 snapshot: 2 " + kAllMetrics;
  const std::vector<float> whole = TestsOf(Spec(fields, 5), {});
  SolverOptions options;
  options.snapshot = folder_ / "s_iter_2.solverstate";
  EXPECT_THAT(TestsOf(Spec(fields, 5), options),
              ElementsAreArray(std::vector(whole.begin() + 7, whole.end())));
}

TEST_F(TestMetricsTest, ChooseTheBestTest) {
  const auto best = [&](const std::string& fields) {
    const SolverSpec spec = Spec("base_lr: 0.1 " + fields, 5);
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    Solver solver(spec, {}, *device, observer);
    solver.Solve();
    return solver.DescribeBest();
  };
  EXPECT_THAT(best("test_metric: 'macro_f1' test_metric: 'ece' "),
              HasSubstr("Best test: macro_f1 "));
  EXPECT_THAT(best("test_metric: 'macro_f1' test_metric: 'ece' best_output: 'ece' patience: 9 "),
              HasSubstr("Best test: ece "));
  EXPECT_THAT(best("test_metric: 'macro_f1' best_output: 'loss' keep_best: 1 "),
              HasSubstr("Best test: loss "));
  EXPECT_THAT(Refusal("test_metric: 'macro_f1' best_output: 'auc' keep_best: 1 "),
              HasSubstr("the first test net has no output 'auc'."));
}

TEST_F(TestMetricsTest, PatienceStopsARunByAMetric) {
  const SolverSpec spec =
      folder_.Spec(kMeasuredNet,
                   "random_seed: 3 base_lr: 0 max_iter: 9 test_interval: 1 patience: 2 "
                   "test_metric: 'macro_f1' ",
                   5);
  const auto device = MakeTestDevice(1);
  RecordingObserver observer;
  Solver solver(spec, {}, *device, observer);
  solver.Solve();
  ASSERT_THAT(observer.notes, Not(testing::IsEmpty()));
  EXPECT_THAT(observer.notes.back(),
              HasSubstr("The last 2 tests did not improve macro_f1 (patience: 2): the best was "));
}

TEST_F(TestMetricsTest, TheLayerCanBeChosen) {
  const std::string net = kMeasuredNet + R"(
layer { name: "zeros" type: "Power" bottom: "ip" top: "zeros" power_param { scale: 0 }
        include { phase: TEST } }
layer { name: "none" type: "Accuracy" bottom: "zeros" bottom: "label" top: "none"
        include { phase: TEST } }
)";
  const std::vector<float> none = TestsOfRanks("test_metric: 'accuracy' ", 5, 1, net);
  const std::vector<float> loss =
      TestsOfRanks("test_metric: 'accuracy' test_metric_layer: 'loss' ", 5, 1, net);
  EXPECT_EQ(none[2], 0) << "the Accuracy layer comes first, and all its scores are equal";
  EXPECT_GT(loss[2], 0);
  EXPECT_THAT(Refusal("test_metric: 'accuracy' test_metric_layer: 'los' "),
              HasSubstr("the first test net has no layer 'los' that compares outputs with "
                        "targets; name an Accuracy or a loss layer"));
}

TEST_F(TestMetricsTest, RefusesWhatTheNetCannotGive) {
  EXPECT_THAT(Refusal("test_metric: 'macro_f' "), HasSubstr("solver.prototxt:3:"));
  EXPECT_THAT(Refusal("test_metric: 'macro_f' "),
              HasSubstr("there is no metric 'macro_f'. Did you mean 'macro_f1'?"));
  EXPECT_THAT(Refusal("test_metric: 'rmse' "),
              HasSubstr("'rmse' is a metric of numbers, but layer 'loss' (SoftmaxWithLoss) "
                        "compares classes"));
  EXPECT_THAT(Refusal("test_metric: 'auc' test_metric: 'auc' "),
              HasSubstr("test_metric 'auc' is given twice; remove one"));
  std::string net = kMeasuredNet + R"(
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
        include { phase: TEST } })";
  EXPECT_THAT(Refusal("test_metric: 'accuracy' ", net),
              HasSubstr("the first test net has an output 'accuracy', and a metric must have "
                        "another name; give that top another name, or remove the line"));
  net = kMeasuredNet;
  net.replace(net.find("type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\""), 52,
              "type: \"Reduction\" bottom: \"ip\" loss_weight: 1");
  EXPECT_THAT(Refusal("test_metric: 'accuracy' ", net),
              HasSubstr("the first test net has no layer that compares outputs with targets"));
}

}  // namespace
}  // namespace trainer
