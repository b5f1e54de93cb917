// The minimum number of bytes that a layer moves.

#include "trainer/net/cost.h"

#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

// x (4, 6) -> ip1 (4, 5) -> ReLU -> Flatten, a view -> ip2 (4, 3), and a loss.
constexpr char kText[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "a" inner_product_param {
        num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "a" top: "b" }
layer { name: "flat" type: "Flatten" bottom: "b" top: "c" }
layer { name: "ip2" type: "InnerProduct" bottom: "c" top: "d" inner_product_param {
        num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "d" bottom: "label" top: "loss" }
)";

constexpr size_t kX = 4 * 6 * 4, kA = 4 * 5 * 4, kD = 4 * 3 * 4;  // bytes
constexpr size_t kIp1 = (5 * 6 + 5) * 4, kIp2 = (3 * 5 + 3) * 4;

class TrafficTest : public testing::Test {
 protected:
  NodeBytes Of(const std::string& layer, bool training) {
    NetOptions options;
    options.state = StateOf(training ? caffe::TRAIN : caffe::TEST, 0, {});
    options.training = training;
    options.fuse = false;
    options.log = false;
    ParamStore params(*device_);
    const Net net(spec_, options, *device_, params);
    for (const NodeId id : net.graph().nodes.Ids()) {
      if (net.graph().nodes[id].spec.name() == layer) return BytesMoved(net.graph(), id.number);
    }
    ADD_FAILURE() << layer;
    return {};
  }

  NetSpec spec_ = NetFromText(kText);
  std::unique_ptr<Device> device_ = MakeTestDevice(1);
};

TEST_F(TrafficTest, ForwardCountsInputsOutputsAndParametersOnce) {
  EXPECT_EQ(Of("data", true).forward, kX + 4 * 4);
  EXPECT_EQ(Of("ip1", true).forward, kX + kA + kIp1);
  EXPECT_EQ(Of("relu", true).forward, 2 * kA);
  EXPECT_EQ(Of("ip2", false).forward, kA + kD + kIp2);
}

TEST_F(TrafficTest, BackwardCountsGradientsAndWhatIsKept) {
  // x needs no gradient, so the weights are not read.
  EXPECT_EQ(Of("ip1", true).backward, kX + kA + kIp1);
  EXPECT_EQ(Of("ip2", true).backward, 2 * kA + kD + 2 * kIp2);
  EXPECT_EQ(Of("relu", true).backward, 3 * kA);
}

TEST_F(TrafficTest, WhatDoesNotRunMovesNothing) {
  EXPECT_EQ(Of("flat", true).forward, 0u);
  EXPECT_EQ(Of("flat", true).backward, 0u);
  EXPECT_EQ(Of("data", true).backward, 0u);
  EXPECT_EQ(Of("ip1", false).backward, 0u);
}

TEST_F(TrafficTest, AFusedLayerMovesNothing) {
  NetOptions options;
  options.state = StateOf(caffe::TRAIN, 0, {});
  options.training = true;
  options.log = false;
  ParamStore params(*device_);
  const Net net(spec_, options, *device_, params);
  for (const NodeId id : net.graph().nodes.Ids()) {
    if (!net.graph().nodes[id].fused_into) continue;
    const NodeBytes moved = BytesMoved(net.graph(), id.number);
    EXPECT_EQ(moved.forward + moved.backward, 0u) << net.graph().nodes[id].spec.name();
  }
}

}  // namespace
}  // namespace trainer
