// The data that host and device exchange in a pass.

#include "execute/pass_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/late_device.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "support/wrapped_device.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

constexpr char kExchangeNet[] = R"(
layer { name: "data" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 4 dim: 3 dim: 5 dim: 5 } shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "relu" loss_weight: 0.25 }
layer { name: "ip" type: "InnerProduct" bottom: "relu" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
        loss_param { class_weight: 1 class_weight: 2 class_weight: 0.5 } }
layer { name: "other" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "other"
        loss_weight: 0.5 }
)";

// An asynchronous device: errors show when the host asks. Counts the copies.
class FarDevice final : public WrappedDevice {
 public:
  bool IsAsync() const override { return true; }
  void CopyToDevice(void* to, const void* host, size_t bytes) const override {
    ++up;
    WrappedDevice::CopyToDevice(to, host, bytes);
  }
  void CopyToHost(void* host, const void* from, size_t bytes) const override {
    ++down;
    WrappedDevice::CopyToHost(host, from, bytes);
  }
  std::unique_ptr<AsyncReadback> NewReadback() const override { return Device::NewReadback(); }

  mutable int up = 0, down = 0;
};

class ExchangeTest : public testing::Test {
 protected:
  explicit ExchangeTest() : spec_(NetFromText(kExchangeNet)) {
    options_.state = StateOf(caffe::TRAIN);
    options_.training = true;
    options_.seed = 3;
    options_.log = false;
  }

  std::unique_ptr<Net> Make(const Device& device, ParamStore& params) {
    auto net = std::make_unique<Net>(spec_, options_, device, params);
    std::vector<float> data(4 * 3 * 5 * 5);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 7) - 3;
    net->WriteNchw(data, net->Value("data"));
    net->WriteNchw(std::vector<float>{0, 1, 2, 1}, net->Value("label"));
    return net;
  }

  NetSpec spec_;
  NetOptions options_;
  LateDevice late_;
};

TEST_F(ExchangeTest, APassIsNothingUpAndOneCopyDown) {
  const auto cpu = MakeTestDevice(2);
  ParamStore near_params(*cpu);
  const float loss = Make(*cpu, near_params)->Forward();
  const FarDevice device;
  ParamStore params(device);
  const auto net = Make(device, params);
  for (int pass = 0; pass < 3; ++pass) {
    device.up = device.down = 0;
    EXPECT_EQ(net->Forward(), loss);
    net->Backward();
    EXPECT_EQ(device.up, 0);
    EXPECT_EQ(device.down, 1);
  }
}

TEST_F(ExchangeTest, AFaultShowsWithTheLossAndInNoLaterPass) {
  const FarDevice device;
  ParamStore params(device);
  const auto net = Make(device, params);
  net->WriteNchw(std::vector<float>{0, 7, 2, 1}, net->Value("label"));
  EXPECT_THAT(ErrorOf([&] { net->Forward(); }).second, testing::HasSubstr("label"));
  net->WriteNchw(std::vector<float>{0, 1, 2, 1}, net->Value("label"));
  EXPECT_NO_THROW(net->Forward());
}

TEST_F(ExchangeTest, TwoPassesMayBeOnTheirWay) {
  const auto near = MakeTestDevice(2);
  ParamStore near_params(*near), params(late_);
  const float loss = Make(*near, near_params)->Forward();
  const auto net = Make(late_, params);
  EXPECT_TRUE(net->RunsAhead());
  for (int round = 0; round < 3; ++round) {
    net->Run({.mode = Pass::Mode::kForward});
    net->Run({.mode = Pass::Mode::kForward});
    EXPECT_EQ(net->in_flight(), 2);
    EXPECT_EQ(net->TakeLoss(), loss);
    net->Run({.mode = Pass::Mode::kForward});
    EXPECT_EQ(net->TakeLoss(), loss);
    EXPECT_EQ(net->TakeLoss(), loss);
    EXPECT_EQ(net->in_flight(), 0);
  }
  EXPECT_EQ(ErrorOf([&] { net->TakeLoss(); }).first, ErrorCode::kInternal);
  net->Run({.mode = Pass::Mode::kForward});
  EXPECT_EQ(ErrorOf([&] { net->Forward(); }).first, ErrorCode::kInternal);
  net->Run({.mode = Pass::Mode::kForward});
  EXPECT_EQ(ErrorOf([&] { net->Run({.mode = Pass::Mode::kForward}); }).first, ErrorCode::kInternal);
}

TEST_F(ExchangeTest, AFaultIsToldWithTheLossOfItsOwnPass) {
  ParamStore params(late_);
  const auto net = Make(late_, params);
  net->Run({.mode = Pass::Mode::kForward});
  net->WriteNchw(std::vector<float>{0, 7, 2, 1}, net->Value("label"));
  net->Run({.mode = Pass::Mode::kForward});
  net->WriteNchw(std::vector<float>{0, 1, 2, 1}, net->Value("label"));
  EXPECT_NO_THROW(net->TakeLoss());
  net->Run({.mode = Pass::Mode::kForward});
  EXPECT_THAT(ErrorOf([&] { net->TakeLoss(); }).second, testing::HasSubstr("label 7 of item 1"));
  EXPECT_NO_THROW(net->TakeLoss());
}

TEST_F(ExchangeTest, TheDeviceCountsThePasses) {
  PassResults exchange(late_, 3, 1);
  late_.NewStep();
  for (const uint32_t pass : {0u, 1u, 2u, 7u, 8u, 3u, 3u, 4u}) {
    exchange.Begin(pass);
    uint32_t counted = ~0u;
    late_.CopyToHost(&counted, exchange.pass()->on_device, sizeof(counted));
    EXPECT_EQ(counted, pass);
  }
  EXPECT_EQ(late_.direct_copies, 2) << "where the numbers do not follow each other";
}

TEST_F(ExchangeTest, AddressesHoldFromPassToPass) {
  const auto device = MakeTestDevice(2);
  ParamStore params(*device);
  const auto net = Make(*device, params);
  std::vector<const void*> before;
  for (int pass = 0; pass < 2; ++pass) {
    net->Forward();
    net->Backward();
    std::vector<const void*> now;
    for (const Node& node : net->graph().nodes) {
      if (node.in.empty() || node.fused_into) continue;
      now.push_back(net->Value(node.in[0]).data);
      now.push_back(net->Value(node.out[0]).data);
    }
    if (pass > 0) {
      EXPECT_EQ(now, before);
    }
    before = now;
  }
}

}  // namespace
}  // namespace trainer
