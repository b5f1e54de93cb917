// Tests that are one exact pass over their data, and the test at the end of a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rows_run.h"
#include "support/error_of.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

// Tests read 26 rows in batches of BATCH.
const std::string kExactNet = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: 4 } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: BATCH } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "ip" top: "bn" }
layer { name: "accuracy" type: "Accuracy" bottom: "bn" bottom: "label" top: "accuracy"
        include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "bn" bottom: "label" top: "loss" }
)";

// The running averages of BatchNorm would depend on the records that each rank trains on.
std::string WithoutBatchNorm() {
  std::string net = kExactNet;
  return net.replace(net.find("BatchNorm"), 9, "TanH");
}

class ExactTestTest : public testing::Test {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("the threads sum arrays of the host"); }

  // Returns the accuracies and losses of all tests and, with test_compute_loss, the logged losses
  // too.
  std::vector<float> Tests(const std::string& fields, int batch, SolverOptions options = {}) {
    return TestsOf(folder_.Spec(kExactNet, "random_seed: 3 momentum: 0.9 " + fields, batch),
                   options);
  }
  static std::vector<float> TestsOf(const SolverSpec& spec, const SolverOptions& options) {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    Solver solver(spec, options, *device, observer);
    EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
    return observer.tests;
  }
  std::vector<float> TestsOfRanks(const std::string& fields, int batch, int ranks) {
    std::vector<float> tests;
    const SolverSpec spec =
        folder_.Spec(WithoutBatchNorm(), "random_seed: 3 momentum: 0.9 " + fields, batch);
    RunRanks(ranks, true, "", [&](const SolverOptions& options, ThreadGroup& group) {
      const std::vector<float> own = TestsOf(spec, options);
      if (group.rank().rank == 0) tests = own;
    });
    return tests;
  }

  RowsFolder folder_;
};

// The run tests three times, and each test begins in the data where the previous one ended.
TEST_F(ExactTestTest, EachRecordCountsOnceWhateverTheBatch) {
  const std::string fields = "base_lr: 0.1 test_interval: 4 max_iter: 8 ";
  const std::vector<float> whole = Tests(fields + "test_iter: 1 ", 26);
  ASSERT_EQ(whole.size(), 2u * 3);
  for (const int batch : {1, 3, 5, 13, 25, 26, 27, 64}) {
    EXPECT_THAT(Tests(fields, batch), Pointwise(FloatNear(1e-5f), whole)) << batch;
    EXPECT_THAT(Tests(fields + "test_iter: 0 ", batch), Pointwise(FloatNear(1e-5f), whole))
        << batch;
  }
}

TEST_F(ExactTestTest, RanksGiveTheNumbersOfOneBitForBit) {
  const std::string fields = "base_lr: 0 test_interval: 2 max_iter: 4 snapshot_after_train: false ";
  for (const int batch : {3, 13, 40}) {
    const std::vector<float> one = TestsOfRanks(fields, batch, 1);
    for (const int ranks : {2, 3, 7}) {
      EXPECT_THAT(TestsOfRanks(fields, batch, ranks), ElementsAreArray(one))
          << ranks << " ranks, batches of " << batch;
    }
  }
}

TEST_F(ExactTestTest, AResumedRunTestsBitForBit) {
  const std::string fields = "base_lr: 0.1 test_interval: 2 snapshot: 3 max_iter: 6 ";
  const std::vector<float> whole = Tests(fields, 5);
  SolverOptions options;
  options.snapshot = folder_ / "s_iter_3.solverstate";
  EXPECT_THAT(Tests(fields, 5, options),
              ElementsAreArray(std::vector(whole.begin() + 4, whole.end())));
}

// The forward pass that is displayed after the last update changes BatchNorm's running averages.
TEST_F(ExactTestTest, TheLastTestIsThatOfTheLastSnapshot) {
  const std::string fields = "base_lr: 0.1 test_interval: 5 max_iter: 5 ";
  const std::vector<float> logged = Tests(fields, 5);
  SolverOptions options;
  options.snapshot = folder_ / "s_iter_5.solverstate";
  const std::vector<float> saved = Tests(fields, 5, options);
  EXPECT_THAT(saved, ElementsAreArray(std::vector(logged.end() - 2, logged.end())));
}

TEST_F(ExactTestTest, ARunIsTestedAtItsEndWhateverTheInterval) {
  const std::string fields = "base_lr: 0.1 max_iter: 5 test_interval: ";
  SolverOptions as_caffe;
  as_caffe.test_at_end = false;
  EXPECT_EQ(Tests(fields + "4 ", 5).size(), 2u * 3) << "iterations 0, 4 and 5";
  EXPECT_EQ(Tests(fields + "4 ", 5, as_caffe).size(), 2u * 2) << "iterations 0 and 4";
  EXPECT_EQ(Tests(fields + "5 ", 5).size(), 2u * 2) << "iterations 0 and 5, which is due";
  EXPECT_EQ(Tests(fields + "100 ", 5).size(), 2u * 2);
}

TEST_F(ExactTestTest, TheBestTestIsToldWithItsSnapshotAndNeverOfIteration0) {
  const SolverSpec spec = folder_.Spec(
      kExactNet, "random_seed: 3 base_lr: 0 max_iter: 4 test_interval: 2 snapshot: 2 ", 5);
  const auto device = MakeTestDevice(1);
  RecordingObserver observer;
  Solver solver(spec, {}, *device, observer);
  solver.Solve();
  EXPECT_THAT(solver.DescribeBest(), HasSubstr("Best test: accuracy "));
  EXPECT_THAT(solver.DescribeBest(), testing::Not(HasSubstr("at iteration 0")));
  EXPECT_THAT(solver.DescribeBest(), HasSubstr(", saved in " + (folder_ / "s_iter_")));
}

TEST_F(ExactTestTest, ATestWithoutRecordsNeedsANumberOfBatches) {
  const std::string fields = "base_lr: 0.1 test_interval: 2 max_iter: 4 lr_policy: \"fixed\" ";
  EXPECT_THAT(ErrorOf([&] { SmallRun run(fields); }).second,
              HasSubstr("no layer of the test net reads records from files, so a test has no end; "
                        "give the number of batches (test_iter)"));
}

}  // namespace
}  // namespace trainer
