#include "trainer/metrics/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "inference/small_net.h"
#include "support/error_of.h"
#include "support/net_text.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::NanSensitiveFloatEq;

// Uses a net whose layer compares the inputs "x" and "t".
class RecordReaderTest : public testing::Test {
 protected:
  void Make(const std::string& shapes, const std::string& layers) {
    small_ = std::make_unique<SmallNet>(
        "layer { name: 'in' type: 'Input' top: 'x' top: 't' input_param { " + shapes + " } } " +
        layers);
    comparison_ = FindComparison(small_->net->graph());
    ASSERT_TRUE(comparison_);
  }
  std::vector<float> Read(const std::vector<float>& x, const std::vector<float>& t) {
    const std::vector<InputBlob> inputs = InputBlobs(*small_->net);
    small_->net->WriteNchw(x, inputs[0].value);
    small_->net->WriteNchw(t, inputs[1].value);
    RecordReader reader(*small_->net, *comparison_);
    small_->net->Forward();
    const std::span<const float> rows = reader.Rows();
    EXPECT_EQ(rows.size(), reader.NumbersPerPass());
    return {rows.begin(), rows.end()};
  }

  std::unique_ptr<SmallNet> small_;
  std::optional<Comparison> comparison_;
};

TEST_F(RecordReaderTest, ARowHasTheClassAndItsScores) {
  Make("shape { dim: 3 dim: 2 } shape { dim: 3 }",
       "layer { name: 'a' type: 'Accuracy' bottom: 'x' bottom: 't' top: 'a' "
       "accuracy_param { ignore_label: 7 } }");
  EXPECT_THAT(Read({1, 2, 3, 4, 5, 6}, {1, 7, 0.5f}),
              ElementsAre(1, 1, 2, NanSensitiveFloatEq(NAN), 3, 4, 0, 5, 6));
}

TEST_F(RecordReaderTest, EachPlaceOfAnImageIsARow) {
  Make("shape { dim: 1 dim: 2 dim: 1 dim: 3 } shape { dim: 1 dim: 1 dim: 1 dim: 3 }",
       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 't' }");
  EXPECT_THAT(Read({1, 2, 3, 4, 5, 6}, {0, 1, 0}), ElementsAre(0, 1, 4, 1, 2, 5, 0, 3, 6));
}

TEST_F(RecordReaderTest, ARowHasAllLabels) {
  Make("shape { dim: 2 dim: 2 } shape { dim: 2 dim: 2 }",
       "layer { name: 'l' type: 'SigmoidCrossEntropyLoss' bottom: 'x' bottom: 't' "
       "loss_param { ignore_label: -1 } }");
  EXPECT_THAT(Read({1, 2, 3, 4}, {1, 0, -1, 1}),
              ElementsAre(1, 0, 1, 2, NanSensitiveFloatEq(NAN), 1, 3, 4));
  EXPECT_THAT(ErrorOf([&] {
                Read({1, 2, 3, 4}, {1, 0, 0.25f, 1});
              }),
              testing::Pair(ErrorCode::kData,
                            HasSubstr("target 0.25 in 't' is neither 0 nor 1, so metrics of labels "
                                      "are not defined")));
}

TEST_F(RecordReaderTest, ARowHasAllNumbers) {
  Make("shape { dim: 2 dim: 2 } shape { dim: 2 dim: 2 }",
       "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' bottom: 't' }");
  EXPECT_THAT(Read({1, 2, 3, 4}, {5, 6, 7, 8.5f}), ElementsAre(5, 6, 1, 2, 7, 8.5f, 3, 4));
}

// Layers after the comparison reuse the memory of the scores.
TEST_F(RecordReaderTest, ReadsWhatLaterLayersOverwrite) {
  const std::string text = R"(
layer { name: "in" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 }
    data_filler { type: "constant" value: 2 } data_filler { type: "constant" value: 1 } } }
layer { name: "p" type: "Power" bottom: "x" top: "scores" power_param { scale: 3 } }
layer { name: "a" type: "Accuracy" bottom: "scores" bottom: "t" top: "a" }
layer { name: "q" type: "Power" bottom: "scores" top: "q" power_param { shift: 9 } }
layer { name: "r" type: "Power" bottom: "q" top: "r" power_param { shift: 9 } })";
  const NetSpec spec = NetFromText(text);
  const std::unique_ptr<Device> device = MakeCpuDevice(1);
  ParamStore params(*device);
  NetOptions options;
  options.state = StateOf(caffe::TEST);
  options.log = false;
  options.memory = BufferReuse::kPoisoned;
  Net net(spec, options, *device, params);
  RecordReader reader(net, *FindComparison(net.graph()));
  net.Forward();
  const std::span<const float> rows = reader.Rows();
  EXPECT_THAT(std::vector<float>(rows.begin(), rows.end()), ElementsAre(1, 6, 6, 6, 1, 6, 6, 6));
}

}  // namespace
}  // namespace trainer
