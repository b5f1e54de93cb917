// A run whose loss is not finite names the layer, the record and the learning rate.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "small_run.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kBrokenPassNet[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label"
        hdf5_data_param { source: "ROWS" batch_size: 4 } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "constant" value: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

class BrokenPassTest : public testing::Test {
 protected:
  // Returns the message of a run with batches of 4 that fails in iteration 1, where value 2 of row
  // 6 is `value`.
  std::string Ends(float value, const std::string& net = kBrokenPassNet,
                   const std::string& fields = "base_lr: 0 lr_policy: \"fixed\" ") {
    constexpr int kRows = 8, kWidth = 5;
    std::vector<float> rows(kRows * kWidth, 0.5f), labels(kRows, 1);
    rows[6 * kWidth + 2] = value;
    {
      Hdf5Appender file(folder_ / "rows.h5");
      file.Append("x", std::vector<int64_t>{kRows, kWidth}, rows);
      file.Append("label", std::vector<int64_t>{kRows}, labels);
      file.Flush();
    }
    WriteText(folder_ / "list.txt", folder_ / "rows.h5");
    std::string text = net;
    text.replace(text.find("ROWS"), 4, folder_ / "list.txt");
    SmallRun run(fields + "max_iter: 4 display: 1 ", text);
    const auto [code, message] = ErrorOf([&] { run.Solve(); });
    EXPECT_EQ(code, ErrorCode::kDiverged);
    EXPECT_THAT(message, HasSubstr("iteration 1: the loss is "));
    EXPECT_THAT(message, Not(HasSubstr("split")));
    return message;
  }

  TempFolder folder_;
};

TEST_F(BrokenPassTest, ANumberOfTheDataIsNamedWithItsRecord) {
  TRAINER_CPU_ONLY("a GPU has copied the next batch over this one");
  EXPECT_THAT(Ends(NAN),
              AllOf(HasSubstr("the data has nan in a value that layer 'rows' (HDF5Data,"),
                    HasSubstr("first in row 6 of"), HasSubstr("rows.h5"),
                    HasSubstr("The learning rate is 0 (lr_policy \"fixed\", base_lr 0)")));
}

TEST_F(BrokenPassTest, TheFirstLayerIsNamedAndTheRecordOfTheLargestNumber) {
  TRAINER_CPU_ONLY("a GPU has copied the next batch over this one");
  std::string net = kBrokenPassNet;
  net.replace(net.find("value: 1 }"), 10, "value: 100 }");
  EXPECT_THAT(Ends(3e38f, net),
              AllOf(HasSubstr("the first values that are not finite (NaN or infinity) are in the "
                              "output of layer 'ip' (InnerProduct, "),
                    HasSubstr("in 1 of the 4 records of the batch: row 6 of "),
                    HasSubstr("the largest value in its input is 3e+38, in row 6 of")));
}

TEST_F(BrokenPassTest, TheRatesPlaceInTheScheduleIsSaid) {
  EXPECT_THAT(Ends(NAN, kBrokenPassNet,
                   "base_lr: 0.5 lr_policy: \"multistep\" gamma: 0.5 stepvalue: 1 stepvalue: 3 "),
              HasSubstr(". The learning rate is 0.5, after 0 of 2 steps from base_lr 0.5. Try a "
                        "lower"));
}

TEST(NoLossTest, ARunWithoutALossIsRefused) {
  const std::string data = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 5 } shape { dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
)";
  const std::string fields = "base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1 ";
  const auto [code, text] = ErrorOf([&] { SmallRun run(fields, data); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("the training net has no loss, so it would learn nothing: no layer "
                              "in phase TRAIN is a loss layer or has a loss_weight; add a loss "
                              "layer"));
  const std::string of_test = data + R"(
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
        include { phase: TEST } })";
  EXPECT_THAT(ErrorOf([&] { SmallRun run(fields, of_test); }).second,
              AllOf(HasSubstr("layer 'loss' (SoftmaxWithLoss, "),
                    HasSubstr("is excluded by its include and exclude "
                              "rules")));
}

TEST(MissingAveragesTest, ATestBeforeTheFirstIterationSaysWhyItsNumbersMeanNothing) {
  const std::string net = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label" dummy_data_param {
        shape { dim: 4 dim: 5 } shape { dim: 4 } data_filler { type: "gaussian" std: 1 }
        data_filler { value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "ip" top: "bn" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "bn" bottom: "label" top: "loss" }
)";
  SmallRun run(
      "base_lr: 0.1 lr_policy: \"fixed\" max_iter: 2 test_iter: 1 test_interval: 1 display: 1 ",
      net);
  run.Solve();
  const std::string start =
      "Test net #0: its BatchNorm layer has no moving averages before the "
      "first iteration ('bn' is the first)";
  EXPECT_EQ(std::ranges::count_if(run.observer.notes,
                                  [&](const std::string& note) { return note.starts_with(start); }),
            1);
}

}  // namespace
}  // namespace trainer
