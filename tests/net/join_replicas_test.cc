#include "trainer/net/join_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/net_text.h"
#include "support/test_device.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Builds a net for JoinReplicas.
class JoinReplicasTest : public testing::Test {
 protected:
  void Build(const std::string& text, caffe::Phase phase) {
    net_.reset();
    spec_ = NetFromText(text);
    params_ = std::make_unique<ParamStore>(*device_);
    net_ = std::make_unique<Net>(spec_, QuietOptions(phase), *device_, *params_);
  }

  std::unique_ptr<Device> device_ = MakeTestDevice();
  NetSpec spec_;
  std::unique_ptr<ParamStore> params_;
  std::unique_ptr<Net> net_;
};

constexpr char kInputs[] = R"(
layer { name: "in" type: "DummyData" top: "x" top: "pick"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 }
                           data_filler { type: "gaussian" } data_filler { value: 1 } } }
)";

TEST_F(JoinReplicasTest, ALayerThatNeedsAllBatchesIsRefusedWhereABatchMayBeEmpty) {
  Build(std::string(kInputs) + R"(
layer { name: "filter" type: "Filter" bottom: "x" bottom: "pick" top: "some" }
layer { name: "bn" type: "BatchNorm" bottom: "some" top: "bn"
        batch_norm_param { synchronized: true } }
)",
        caffe::TRAIN);
  const auto [code, message] = ErrorOf([&] { JoinReplicas(*net_, {2, [](std::span<float>) {}}); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message,
              HasSubstr("layer 'bn' (BatchNorm): synchronized: true computes mean and variance "
                        "over all ranks, but its input changes in size from batch to batch and "
                        "may be empty on one rank; remove synchronized, or train with one rank"));
}

TEST_F(JoinReplicasTest, ALossThatCountsCountsItsOwnBatchWhereItMayBeEmpty) {
  Build(std::string(kInputs) + R"(
layer { name: "filter" type: "Filter" bottom: "x" bottom: "pick" top: "some" }
layer { name: "label" type: "DummyData" top: "label" dummy_data_param { shape { dim: 4 } } }
layer { name: "filter2" type: "Filter" bottom: "label" bottom: "pick" top: "some_label" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "some" bottom: "some_label" top: "loss"
        loss_param { ignore_label: 5 } }
)",
        caffe::TRAIN);
  JoinReplicas(*net_, {2, [](std::span<float>) { FAIL() << "nothing is summed"; }});
  net_->Forward();
}

}  // namespace
}  // namespace trainer
