// The six ways to run a net, each with one Run per pass. All use this net: y = w * x, loss = (y -
// t)^2 / 2. With w = 2, x = 3 and t = 4: y = 6, the loss is 2, and the gradient of w is (y - t) * x
// = 6.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/late_device.h"
#include "support/log_collector.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGivenInput[] = R"(
layer { name: "data" type: "Input" top: "x" top: "t" input_param { shape { dim: 1 dim: 1 } } }
)";
constexpr char kDrawnInput[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "t" dummy_data_param {
          shape { dim: 1 dim: 1 } data_filler { type: "gaussian" } data_filler { value: 4 } } }
)";
constexpr char kProduct[] = R"(
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 1 bias_term: false weight_filler { value: 2 } } }
)";
constexpr char kLoss[] = R"(
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

constexpr auto kForward = Pass::Mode::kForward, kBackward = Pass::Mode::kBackward;

struct MadeNet {
  MadeNet(const std::string& text, const NetOptions& options, const Device& on)
      : device(on), spec(NetFromText(text)), params(on), net(spec, options, on, params) {}

  void Write(float value, const Tensor& to) const { net.WriteNchw(std::vector<float>{value}, to); }
  float Read(const Tensor& value) const {
    float number = 0;
    net.ReadNchw(value, {&number, 1});
    return number;
  }
  float Loss(const Pass& pass) {
    net.Run(pass);
    return net.TakeLoss();
  }
  void SetInput(float x, float t) const {
    Write(x, net.Value("x"));
    Write(t, net.Value("t"));
  }
  float gradient() const { return ReadFloats(device, params.Gradients().data(), 1)[0]; }

  const Device& device;
  NetSpec spec;
  ParamStore params;
  Net net;
};

class PassTest : public testing::Test {
 protected:
  NetOptions options_ = QuietOptions(caffe::TRAIN);
  std::unique_ptr<Device> device_ = MakeTestDevice(1);
};

TEST_F(PassTest, AtOnce) {
  MadeNet made(std::string(kGivenInput) + kProduct + kLoss, options_, *device_);
  made.SetInput(3, 4);
  made.net.Run({});
  EXPECT_EQ(made.net.TakeLoss(), 2);
  EXPECT_EQ(made.gradient(), 6);
  EXPECT_EQ(made.net.passes(), 1u);
}

TEST_F(PassTest, TheLossIsTakenLater) {
  const LateDevice device;
  MadeNet made(std::string(kGivenInput) + kProduct + kLoss, options_, device);
  made.SetInput(3, 4);
  made.net.Run({});
  made.SetInput(1, 5);
  made.net.Run({});
  EXPECT_EQ(made.net.in_flight(), 2);
  EXPECT_EQ(made.net.TakeLoss(), 2);
  EXPECT_EQ(made.net.TakeLoss(), 4.5);
  EXPECT_EQ(made.gradient(), 6 - 3);
}

// Counts the slices that it receives, and the passes that are replayed.
struct CountingSink final : GradientSink {
  void OnGradientReady(int, std::span<float>) override { ++ready; }
  bool SumsCapturedPasses() const override { return true; }
  void OnReplay() override { ++replayed; }
  int ready = 0, replayed = 0;
};

// The first pass of each kind runs node by node, the second is captured and launched, the third is
// launched.
TEST_F(PassTest, AsACapturedGraph) {
  if (FindGpus().gpus.empty()) GTEST_SKIP() << "there is no GPU, not even an emulated one";
  const auto gpu = MakeGpuDevice({.deterministic = true, .graphs = true});
  options_.capture = true;
  const LogCollector log;
  MadeNet made(std::string(kGivenInput) + kProduct + kLoss, options_, *gpu);
  made.SetInput(3, 4);
  CountingSink sink;
  const std::span<float> gradients = made.params.Gradients();
  const std::function<void()> clear = [&] { gpu->Zero(gradients.data(), gradients.size_bytes()); };
  for (int pass = 1; pass <= 3; ++pass) {
    EXPECT_EQ(made.Loss({}), 2);
    EXPECT_EQ(made.gradient(), 6);
    EXPECT_EQ(made.Loss({.gradients = &sink}), 2);
    EXPECT_EQ(made.gradient(), 6 + 6);
    EXPECT_EQ(made.Loss({.fused_update = &clear}), 2);
    EXPECT_EQ(made.gradient(), 0);
    EXPECT_EQ(sink.ready, std::min(pass, 2));
    EXPECT_EQ(sink.replayed, pass - 1);
  }
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("Recorded a pass of net"),
                                     HasSubstr("markers for the sums of gradients"),
                                     HasSubstr("Recorded a step of net")));
}

// The first of two stages computes y. Two micro-batches are in flight, and the second stage sends
// back the gradient (y - t).
TEST_F(PassTest, AsAStageOfAPipeline) {
  options_.activation_slots = 2;
  options_.boundary.out.push_back({.blob = "y", .has_gradient = true});
  MadeNet made(std::string(kGivenInput) + kProduct, options_, *device_);
  const ValueId x = made.net.graph().latest_by_name.at("x");
  const ValueId y = made.net.graph().boundary_out.at(0);
  made.Write(3, made.net.Value(x, 0));
  made.Write(1, made.net.Value(x, 1));
  made.Loss({.mode = kForward, .activation_slot = 0});
  made.Loss({.mode = kForward, .activation_slot = 1});
  EXPECT_EQ(made.Read(made.net.Value(y, 0)), 6);
  EXPECT_EQ(made.Read(made.net.Value(y, 1)), 2);
  made.Write(6 - 4, made.net.Gradient(y, 0));
  made.net.Run({.mode = kBackward, .activation_slot = 0});
  EXPECT_EQ(made.gradient(), 6);
  made.Write(2 - 5, made.net.Gradient(y, 1));
  made.net.Run({.mode = kBackward, .activation_slot = 1});
  EXPECT_EQ(made.gradient(), 6 - 3);
}

// Each virtual rank draws the numbers of its rank, and both together are one pass.
TEST_F(PassTest, AsSeveralVirtualRanks) {
  const std::string text = std::string(kDrawnInput) + kProduct + kLoss;
  std::vector<float> losses, gradients;
  for (const int rank : {0, 1}) {
    options_.rank = {rank, 2};
    MadeNet alone(text, options_, *device_);
    losses.push_back(alone.Loss({}));
    gradients.push_back(alone.gradient());
  }
  EXPECT_NE(losses[0], losses[1]);
  options_.rank = {0, 1};
  options_.virtual_ranks = 2;
  MadeNet made(text, options_, *device_);
  EXPECT_EQ(made.Loss({.virtual_rank = 0}), losses[0]);
  EXPECT_EQ(made.Loss({.virtual_rank = 1}), losses[1]);
  EXPECT_FLOAT_EQ(made.gradient(), gradients[0] + gradients[1]);
  EXPECT_EQ(made.net.passes(), 1u);
}

TEST_F(PassTest, OnTheSameBatchAgain) {
  options_.allow_reevaluation = true;
  MadeNet made(std::string(kDrawnInput) + kProduct + kLoss, options_, *device_);
  const float loss = made.Loss({});
  const float gradient = made.gradient();
  EXPECT_EQ(made.Loss({.batch = Pass::Batch::kSame}), loss);
  EXPECT_FLOAT_EQ(made.gradient(), 2 * gradient);
  EXPECT_EQ(made.net.passes(), 1u);
  EXPECT_NE(made.Loss({.mode = kForward}), loss);
}

}  // namespace
}  // namespace trainer
