// iter_size with a loss that divides by the number of counted labels: an update of several passes
// equals the update of one batch with all their records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rows_run.h"
#include "support/log_collector.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;

// `loss` is the type of the loss layer and its fields. The labels are 0 1 2 3 0 1 ...
std::string CountedNet(const std::string& loss) {
  return R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label"
        hdf5_data_param { source: "ROWS" batch_size: BATCH } }
layer { name: "matrix" type: "DummyData" top: "matrix"
        dummy_data_param { shape { dim: 4 dim: 4 } data_filler { value: 0.5 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" bottom: "ip" bottom: "label" top: "loss" )" +
         loss + " }\n";
}
constexpr char kIgnored[] = "type: 'SoftmaxWithLoss' loss_param { ignore_label: 1 }";
constexpr char kWeighted[] = "type: 'SoftmaxWithLoss' loss_param { class_weight: [1, 5, 0.5, 0] }";
constexpr char kInfogain[] = "type: 'InfogainLoss' bottom: 'matrix' loss_param { ignore_label: 3 }";

class LabelCountsTest : public testing::Test {
 protected:
  SolverSpec Spec(const std::string& net, int batch, int passes,
                  const std::string& more = "") const {
    const std::string fields = "base_lr: 0.3 momentum: 0.9 random_seed: 3 max_iter: 4 ";
    return folder_.Spec(net, Join(fields, "iter_size: ", passes, " ", more), batch);
  }

  static std::vector<float> Weights(const SolverSpec& spec, const SolverOptions& options = {}) {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    Solver solver(spec, options, *device, observer);
    EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
    return WeightsOf(solver, *device);
  }

  static std::vector<std::string> Warnings(const SolverSpec& spec) {
    const LogCollector log;
    Weights(spec);
    std::vector<std::string> found;
    for (const std::string& line : log.lines) {
      if (line.find("passes of iter_size") != line.npos) found.push_back(line);
    }
    return found;
  }

  RowsFolder folder_;
};

// Each pass of two records has one or two counted labels, or labels with a total weight of 6, 0.5,
// 6, ...
TEST_F(LabelCountsTest, PassesLearnWhatOneBatchLearns) {
  for (const char* loss : {kIgnored, kWeighted, kInfogain}) {
    SCOPED_TRACE(loss);
    const std::string net = CountedNet(loss);
    const std::vector<float> one = Weights(Spec(net, 6, 1));
    EXPECT_THAT(Weights(Spec(net, 2, 3)), Pointwise(FloatNear(2e-6f), one));
    EXPECT_THAT(Weights(Spec(net, 1, 6)), Pointwise(FloatNear(2e-6f), one)) << "some count none";
    EXPECT_THAT(Warnings(Spec(net, 2, 3)), IsEmpty());
  }
}

TEST_F(LabelCountsTest, PassesOfTwoRanksLearnWhatOneBatchLearns) {
  TRAINER_CPU_ONLY("the threads sum arrays of the host");
  for (const char* loss : {kIgnored, kWeighted}) {
    const std::vector<float> one = Weights(Spec(CountedNet(loss), 12, 1));
    const SolverSpec spec = Spec(CountedNet(loss), 2, 3);
    RunRanks(2, true, "", [&](const SolverOptions& options, ThreadGroup&) {
      EXPECT_THAT(Weights(spec, options), Pointwise(FloatNear(2e-6f), one)) << loss;
    });
  }
}

// Scaling the gradients of earlier passes would be wrong for the second loss.
TEST_F(LabelCountsTest, WithASecondLossAnUpdateIsTheMeanOfItsPassesAndAWarningSaysSo) {
  const std::string net = CountedNet(kIgnored) + R"(
layer { name: "more" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "more" })";
  EXPECT_THAT(Warnings(Spec(net, 2, 3)),
              ElementsAre(AllOf(HasSubstr("layer 'loss' divides the loss of each of the 3 passes"),
                                HasSubstr("net.prototxt:8:"), HasSubstr("VALID with ignore_label"),
                                HasSubstr("normalization: FULL or BATCH_SIZE"))));
  EXPECT_THAT(Warnings(Spec(net, 6, 1)), IsEmpty());
}

TEST_F(LabelCountsTest, VirtualRanksWarn) {
  EXPECT_THAT(Warnings(Spec(CountedNet(kWeighted), 1, 3, "virtual_ranks: 2 ")),
              ElementsAre(HasSubstr("VALID with class_weight")));
}

TEST_F(LabelCountsTest, DivisorsThatAreFixedNeedNothing) {
  for (const char* fixed : {"normalization: FULL", "normalize: false"}) {
    const std::string net =
        CountedNet(Join("type: 'SoftmaxWithLoss' loss_param { ignore_label: 1 ", fixed, " }"));
    EXPECT_THAT(Warnings(Spec(net, 2, 3)), IsEmpty());
    EXPECT_THAT(Weights(Spec(net, 2, 3)), Pointwise(FloatNear(2e-6f), Weights(Spec(net, 6, 1))));
  }
}

}  // namespace
}  // namespace trainer
