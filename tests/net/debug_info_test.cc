#include "trainer/net/debug_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/log_collector.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// y = -0.5 * (2 + 2) + 1 = -1, three times; the loss is 3 / 2, its gradient y.
const char kDebugInfoNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 1 dim: 2 } shape { dim: 1 dim: 3 }
    data_filler { value: 2 } data_filler { value: 0 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" param { name: "w" }
  inner_product_param { num_output: 3 weight_filler { value: -0.5 } bias_filler { value: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "y" top: "y" relu_param { negative_slope: 1 } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

class DebugInfoTest : public testing::Test {
 protected:
  explicit DebugInfoTest(const std::string& fields = "")
      : spec_(NetFromText(fields + kDebugInfoNet)) {
    options_.state = StateOf(caffe::TRAIN);
    options_.training = true;
    options_.log = false;
    net_ = std::make_unique<Net>(spec_, options_, *device_, params_);
  }

  std::unique_ptr<Device> device_ = MakeTestDevice(1);
  NetSpec spec_;
  NetOptions options_;
  ParamStore params_{*device_};
  std::unique_ptr<Net> net_;
  LogCollector collected_;
};

TEST_F(DebugInfoTest, LogsTheMeanOfEveryArray) {
  net_->AddHook(DebugInfoHook());
  net_->Forward();
  EXPECT_THAT(collected_.lines, ElementsAre("    [Forward] Layer data, top blob x data: 2",
                                            "    [Forward] Layer data, top blob t data: 0",
                                            "    [Forward] Layer ip, top blob y data: 1",
                                            "    [Forward] Layer ip, param blob w data: 0.5",
                                            "    [Forward] Layer ip, param blob 1 data: 1",
                                            "    [Forward] Layer relu, top blob y data: 1",
                                            "    [Forward] Layer loss, top blob loss data: 1.5"));
  collected_.lines.clear();
  net_->Backward();
  // Weights: 6 of 0.5 and 3 of 1; gradients: 6 of 2 and 3 of 1.
  EXPECT_THAT(collected_.lines,
              ElementsAre("    [Backward] Layer loss, bottom blob y diff: 1",
                          "    [Backward] Layer relu, bottom blob y diff: 1",
                          "    [Backward] Layer ip, param blob 0 diff: 2",
                          "    [Backward] Layer ip, param blob 1 diff: 1",
                          "    [Backward] All net params (data, diff): L1 norm = (6, 15); L2 norm "
                          "= (2.12132, 5.19615)"));
}

TEST_F(DebugInfoTest, SaysNothingUnlessAsked) {
  net_->Forward();
  net_->Backward();
  EXPECT_THAT(collected_.lines, IsEmpty());
}

class NetsOwnDebugInfoTest : public DebugInfoTest {
 protected:
  NetsOwnDebugInfoTest() : DebugInfoTest("debug_info: true\n") {}
};

TEST_F(NetsOwnDebugInfoTest, TurnsItOn) {
  net_->Forward();
  EXPECT_EQ(collected_.lines.size(), 7u);
}

}  // namespace
}  // namespace trainer
