// Guards the lifetime plan: sharing memory must not change a bit of any result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

// Returns everything that a few passes produce: losses, outputs and parameter gradients, as bits.
std::vector<float> RunPasses(const std::string& text, BufferReuse mode, bool training) {
  const NetSpec spec = NetFromText(text);
  const auto device = MakeTestDevice(2);
  ParamStore params(*device);
  NetOptions options = QuietOptions(training ? caffe::TRAIN : caffe::TEST);
  options.memory = mode;
  Net net(spec, options, *device, params);
  std::vector<float> seen;
  for (int pass = 0; pass < 5; ++pass) {
    seen.push_back(net.Forward());
    if (training) net.Backward();
    for (const NetOutput& output : net.outputs()) {
      std::vector<float> host(static_cast<size_t>(output.value.Count()));
      net.ReadNchw(output.value, host);
      seen.insert(seen.end(), host.begin(), host.end());
    }
    for (const Param* param : net.params()) {
      if (param->grad == nullptr) continue;
      const std::vector<float> grad = GradOf(*device, *param);
      std::vector<float> weight = WeightOf(*device, *param);
      seen.insert(seen.end(), grad.begin(), grad.end());
      for (size_t i = 0; i < grad.size(); ++i) weight[i] -= 0.01f * grad[i];
      WriteFloats(*device, weight, param->weight);
    }
    params.ClearGradients();
  }
  return seen;
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

constexpr char kConvNet[] = R"(
name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 6 dim: 3 dim: 11 dim: 9 } shape { dim: 6 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "drop1" type: "Dropout" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
        pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "conv2a" type: "Convolution" bottom: "pool1" top: "a"
        convolution_param { num_output: 4 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "relu2a" type: "ReLU" bottom: "a" top: "a" }
layer { name: "pool2b" type: "Pooling" bottom: "pool1" top: "b"
        pooling_param { pool: AVE kernel_size: 2 stride: 1 } }
layer { name: "flat" type: "Flatten" bottom: "b" top: "flat" }
layer { name: "ip_a" type: "InnerProduct" bottom: "a" top: "ip_a"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "ip_b" type: "InnerProduct" bottom: "flat" top: "ip_b"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "relu_b" type: "ReLU" bottom: "ip_b" top: "relu_b" }
layer { name: "loss_a" type: "SoftmaxWithLoss" bottom: "ip_a" bottom: "label" top: "loss_a" }
layer { name: "loss_b" type: "SoftmaxWithLoss" bottom: "relu_b" bottom: "label" top: "loss_b"
        loss_weight: 0.3 }
layer { name: "prob" type: "Softmax" bottom: "relu_b" top: "prob" }
layer { name: "quiet" type: "Silence" bottom: "prob" }
)";

TEST(MemoryPlanTest, SharingChangesNoBitOfTraining) {
  const std::vector<float> separate = RunPasses(kConvNet, BufferReuse::kSeparate, true);
  ExpectSameBits(separate, RunPasses(kConvNet, BufferReuse::kShared, true));
  ExpectSameBits(separate, RunPasses(kConvNet, BufferReuse::kPoisoned, true));
}

TEST(MemoryPlanTest, SharingChangesNoBitOfTesting) {
  const std::vector<float> separate = RunPasses(kConvNet, BufferReuse::kSeparate, false);
  ExpectSameBits(separate, RunPasses(kConvNet, BufferReuse::kShared, false));
  ExpectSameBits(separate, RunPasses(kConvNet, BufferReuse::kPoisoned, false));
}

MemoryPlan PlanOf(const std::string& text, bool training, bool fuse = true) {
  const NetSpec spec = NetFromText(text);
  const auto device = MakeTestDevice(1);
  ParamStore params(*device);
  NetOptions options;
  options.state = StateOf(training ? caffe::TRAIN : caffe::TEST);
  options.training = training;
  options.fuse = fuse;
  options.log = false;
  const Net net(spec, options, *device, params);
  return net.graph().memory;
}

TEST(MemoryPlanTest, BlocksThatLiveAtTheSameTimeDoNotOverlap) {
  const MemoryPlan plan = PlanOf(kConvNet, true);
  for (const Buffer& a : plan.buffers) {
    EXPECT_LE(a.offset + a.bytes, plan.arena_bytes) << a.name;
    EXPECT_EQ(a.offset % 64, 0u) << a.name;
    for (const Buffer& b : plan.buffers) {
      if (&a == &b || a.last_use < b.first_use || b.last_use < a.first_use) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
          << a.name << " and " << b.name;
    }
  }
}

TEST(MemoryPlanTest, SharingSavesMemory) {
  const MemoryPlan training = PlanOf(kConvNet, true);
  const MemoryPlan testing = PlanOf(kConvNet, false);
  EXPECT_LT(training.arena_bytes, training.unshared_bytes);
  EXPECT_LT(testing.arena_bytes, training.arena_bytes);
}

const Buffer* FindBlock(const MemoryPlan& plan, const std::string& name) {
  for (const Buffer& block : plan.buffers) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

constexpr char kNormNet[] = R"(
layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 6 dim: 3 dim: 11 dim: 9 } shape { dim: 6 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "bn1" }
layer { name: "scale1" type: "Scale" bottom: "bn1" top: "scale1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "scale1" top: "relu1" }
layer { name: "conv2" type: "Convolution" bottom: "relu1" top: "conv2"
        convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "swish2" type: "Swish" bottom: "conv2" top: "swish2" }
layer { name: "ip" type: "InnerProduct" bottom: "swish2" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// Returns the most memory in use at a step, without scratch, because a library's scratch depends on
// its kernels for this processor.
size_t MostInUse(const MemoryPlan& plan) {
  size_t most = 0;
  for (const Buffer& at : plan.buffers) {
    size_t bytes = 0;
    for (const Buffer& block : plan.buffers) {
      const bool own = block.note.empty() && block.kind != BufferKind::kScratch;
      if (own && block.first_use <= at.first_use && at.first_use <= block.last_use)
        bytes += block.bytes;
    }
    most = std::max(most, bytes);
  }
  return most;
}

TEST(MemoryPlanTest, RecomputingChangesNoBitAndSavesMemory) {
  const std::string text = kNormNet;
  for (const BufferReuse mode : {BufferReuse::kShared, BufferReuse::kPoisoned}) {
    ExpectSameBits(RunPasses(kNormNet, mode, true),
                   RunPasses(("recompute: true" + text).c_str(), mode, true));
  }
  const MemoryPlan kept = PlanOf(text, true), again = PlanOf("recompute: true" + text, true);
  EXPECT_LT(MostInUse(again), MostInUse(kept));
  EXPECT_NE(FindBlock(again, "relu1 again"), nullptr);
  EXPECT_NE(FindBlock(again, "swish2 again"), nullptr);
}

// Regression: the second value was computed again from the first before the first was there.
TEST(MemoryPlanTest, RecomputingFromARecomputedValueChangesNoBit) {
  std::string text = kNormNet;
  const std::string second = "layer { name: 'mish2' type: 'Mish' bottom: 'swish2' top: 'mish2' }\n";
  text.insert(text.find("layer { name: \"ip\""), second);
  text.replace(text.find("bottom: \"swish2\" top: \"ip\""), 16, "bottom: \"mish2\"");
  for (const BufferReuse mode : {BufferReuse::kShared, BufferReuse::kPoisoned}) {
    ExpectSameBits(RunPasses(text.c_str(), mode, true),
                   RunPasses(("recompute: true" + text).c_str(), mode, true));
  }
  const MemoryPlan plan = PlanOf("recompute: true" + text, true);
  const Buffer* first = FindBlock(plan, "swish2 again");
  const Buffer* last = FindBlock(plan, "mish2 again");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(last, nullptr);
  EXPECT_LE(first->first_use, last->first_use);
}

TEST(MemoryPlanTest, ALayerCanRecomputeAloneOrNotAtAll) {
  std::string text = kNormNet;
  text.replace(text.find("\"Swish\""), 7, "\"Swish\" recompute: true");
  EXPECT_NE(FindBlock(PlanOf(text, true), "swish2 again"), nullptr);
  EXPECT_EQ(FindBlock(PlanOf(text, true), "relu1 again"), nullptr);
  text.replace(text.find("recompute: true"), 15, "recompute: false");
  EXPECT_EQ(FindBlock(PlanOf("recompute: true" + text, true), "swish2 again"), nullptr);
  EXPECT_EQ(FindBlock(PlanOf("recompute: true" + text, false), "relu1 again"), nullptr);
}

TEST(MemoryPlanTest, GrantsTheFirstInPlaceWishAndRefusesTheOneThatWouldBreakBackward) {
  // Dropout in place would overwrite what ReLU's backward reads.
  const MemoryPlan plan = PlanOf(kConvNet, true, false);
  const Buffer* conv1 = FindBlock(plan, "conv1");
  ASSERT_NE(conv1, nullptr);
  EXPECT_THAT(conv1->note, testing::HasSubstr("relu1"));
  EXPECT_THAT(conv1->note, testing::Not(testing::HasSubstr("drop1")));
}

// "pool1" has two readers, so that the net adds a Split, which no user wrote.
TEST(MemoryPlanTest, BlocksHaveTheNamesOfTheFile) {
  const NetSpec spec = NetFromText(kConvNet);
  const auto device = MakeTestDevice(1);
  ParamStore params(*device);
  Net net(spec, QuietOptions(caffe::TRAIN), *device, params);
  std::vector<std::string> names;
  for (const Buffer& block : net.graph().memory.buffers) {
    EXPECT_THAT(block.name + block.note, testing::Not(testing::HasSubstr("_split")));
    names.push_back(block.name);
  }
  EXPECT_THAT(names, testing::Contains("pool1 gradient from conv2a"));
}

}  // namespace
}  // namespace trainer
