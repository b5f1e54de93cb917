// Layers that also compute the layers after them: which layers do so, and that the results stay the
// same as layer by layer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/test_device.h"
#include "support/wrapped_device.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kFusionData = R"(
layer { name: "data" type: "DummyData" top: "data" top: "target"
        dummy_data_param { shape { dim: 5 dim: 6 dim: 7 dim: 8 } shape { dim: 5 dim: 20 dim: 7 dim: 8 }
          data_filler { type: "gaussian" mean: 0.5 std: 2 } data_filler { type: "uniform" } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 1 }
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" }
                            bias_filler { type: "uniform" min: -0.2 max: 0.2 } } }
)";
const std::string kNorm = R"(layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" })";
const std::string kScale = R"(
layer { name: "scale" type: "Scale" bottom: "conv" top: "scaled"
        scale_param { bias_term: true filler { type: "uniform" min: -1 max: 2 }
                      bias_filler { type: "uniform" min: -1 max: 1 } } })";
const std::string kShortcut = R"(
layer { name: "shortcut" type: "Convolution" bottom: "data" top: "shortcut"
        convolution_param { num_output: 20 kernel_size: 1 weight_filler { type: "xavier" } } })";

std::string ReluFusion(const std::string& bottom, const std::string& more = "") {
  return Join("layer { name: 'relu' type: 'ReLU' bottom: '", bottom, "' top: 'relu' ", more,
              " }\n");
}
std::string Sum(const std::string& a, const std::string& b, const std::string& more = "") {
  return Join("layer { name: 'sum' type: 'Eltwise' bottom: '", a, "' bottom: '", b, "' top: 'sum' ",
              more, " }\n");
}
std::string LossFusion(const std::string& bottom) {
  return Join("layer { name: 'loss' type: 'EuclideanLoss' bottom: '", bottom,
              "' bottom: 'target' top: 'loss' }\n");
}

struct Run {
  std::vector<std::string> fused;  // "relu in conv"
  std::vector<float> numbers;      // losses, outputs, gradients and stored moments of each pass
};

Run RunNet(const std::string& text, BufferReuse mode, caffe::Phase phase, const Device& device) {
  const NetSpec spec = NetFromText(text);
  ParamStore params(device);
  NetOptions options = QuietOptions(phase);
  options.memory = mode;
  Net net(spec, options, device, params);
  Run run;
  for (const Node& node : net.graph().nodes) {
    if (!node.fused_into) continue;
    run.fused.push_back(
        Join(node.spec.name(), " in ", net.graph().nodes[node.fused_into].spec.name()));
  }
  for (int pass = 0; pass < 3; ++pass) {
    run.numbers.push_back(net.Forward());
    if (options.training) net.Backward();
    for (const Param* param : net.params()) {
      std::vector<float> weight = WeightOf(device, *param);
      run.numbers.insert(run.numbers.end(), weight.begin(), weight.end());
      if (param->grad == nullptr) continue;
      const std::vector<float> grad = GradOf(device, *param);
      run.numbers.insert(run.numbers.end(), grad.begin(), grad.end());
      if (param->lr_mult == 0) continue;
      for (size_t i = 0; i < grad.size(); ++i) weight[i] -= 0.01f * grad[i];
      WriteFloats(device, weight, param->weight);
    }
    if (options.training) params.ClearGradients();
  }
  return run;
}

// The tests' device, which lacks kernels on request and counts the primitives that it makes.
class PickyDevice final : public WrappedDevice {
 public:
  bool Supports(const ConvDesc&) const override { return convolutions; }
  bool Supports(const BatchNormDesc& desc) const override { return norms && (desc.relu || sums); }
  std::unique_ptr<ConvPrimitive> NewConv(const ConvDesc& desc) const override {
    ++made;
    return WrappedDevice::NewConv(desc);
  }
  std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc) const override {
    ++made;
    return WrappedDevice::NewBatchNorm(desc);
  }

  bool convolutions = true, norms = true;
  bool sums = true;  // also without a ReLU
  mutable int made = 0;
};

// Expects that the fused net computes the same as its layers one by one. Returns what is fused into
// what.
std::vector<std::string> ExpectSame(const std::string& text, caffe::Phase phase = caffe::TRAIN,
                                    const PickyDevice& device = PickyDevice()) {
  const Run alone = RunNet(text, BufferReuse::kSeparate, phase, device);
  EXPECT_THAT(alone.fused, IsEmpty());
  const Run fused = RunNet(text, BufferReuse::kPoisoned, phase, device);
  EXPECT_EQ(alone.numbers.size(), fused.numbers.size());
  for (size_t i = 0; i < std::min(alone.numbers.size(), fused.numbers.size()); ++i) {
    const float want = alone.numbers[i], got = fused.numbers[i];
    EXPECT_NEAR(got, want, 2e-4f * (1 + std::abs(want))) << i << " of " << alone.numbers.size();
    if (std::isnan(got) || std::abs(got - want) > 1) break;
  }
  return fused.fused;
}

TEST(FusionTest, ConvolutionTakesReLU) {
  EXPECT_THAT(ExpectSame(kFusionData + ReluFusion("conv") + LossFusion("relu")),
              ElementsAre("relu in conv"));
}

TEST(FusionTest, MaxPoolTakesReLU) {
  const auto pool = [](const std::string& method) {
    return Join("layer { name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool' pooling_param { ",
                "pool: ", method, " kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0 } }\n");
  };
  const std::string rest = ReluFusion("pool") + LossFusion("relu");
  EXPECT_THAT(ExpectSame(kFusionData + pool("MAX") + rest), ElementsAre("relu in pool"));
  EXPECT_THAT(ExpectSame(kFusionData + pool("MAX") + rest, caffe::TEST),
              ElementsAre("relu in pool"));
  EXPECT_THAT(ExpectSame(kFusionData + pool("AVE") + rest), IsEmpty());
}

// A convolution of images with 3 channels and its max pool, from which the device computes the
// weight gradient. `more` is added to the convolution.
std::string ImageNet(const std::string& between, const std::string& after, const std::string& top,
                     const std::string& more = "") {
  return Join(R"(
layer { name: "data" type: "DummyData" top: "data" top: "target"
        dummy_data_param { shape { dim: 5 dim: 3 dim: 13 dim: 12 } shape { dim: 5 dim: 20 dim: 6 dim: 6 }
          data_filler { type: "gaussian" mean: 0.5 std: 2 } data_filler { type: "uniform" } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" )",
              more, R"(
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" }
                            bias_filler { type: "uniform" min: -0.2 max: 0.2 } } }
)",
              between, "layer { name: 'pool' type: 'Pooling' bottom: '",
              between.empty() ? "conv" : "relu",
              "' top: 'pool' pooling_param { pool: MAX kernel_size: 3 stride: 2 } }\n", after,
              LossFusion(top));
}
// Whether the tests' device has a weight gradient from a pool's winners.
bool HasPooledGradient() { return !TestsOnGpu() && DetectCpuIsa() != CpuIsa::kBase; }

TEST(FusionTest, ConvolutionTakesMaxPoolAndReLU) {
  if (!HasPooledGradient()) GTEST_SKIP() << "the device has no such kernel";
  EXPECT_THAT(ExpectSame(ImageNet("", "", "pool")), ElementsAre("pool in conv"));
  const std::string before = ImageNet(ReluFusion("conv"), "", "pool");
  const std::string after = ImageNet("", ReluFusion("pool"), "relu");
  EXPECT_THAT(ExpectSame(before), ElementsAre("relu in conv", "pool in conv"));
  EXPECT_THAT(ExpectSame(after), ElementsAre("pool in conv", "relu in conv"));
  EXPECT_THAT(ExpectSame(before, caffe::TEST), ElementsAre("relu in conv", "pool in conv"));
}

TEST(FusionTest, OnlyATrainingNetHasAWeightGradientFromAPool) {
  if (!HasPooledGradient()) GTEST_SKIP() << "the device has no such kernel";
  const auto kernel = [](caffe::Phase phase) {
    const PickyDevice device;
    ParamStore params(device);
    Net net(NetFromText(ImageNet("", "", "pool")), QuietOptions(phase), device, params);
    return net.graph().nodes[NodeId(1)].layer->kernel();
  };
  EXPECT_THAT(kernel(caffe::TRAIN), HasSubstr(", weight gradient own pooled windows"));
  EXPECT_THAT(kernel(caffe::TEST), Not(HasSubstr(", weight gradient own pooled windows")));
}

// The gradient of the convolution's output is needed then.
TEST(FusionTest, AConvolutionWithAPoolPassesItsDataGradientOn) {
  if (!HasPooledGradient()) GTEST_SKIP() << "the device has no such kernel";
  const std::string net = ImageNet(ReluFusion("conv"), "", "pool");
  EXPECT_THAT(ExpectSame("force_backward: true " + net),
              ElementsAre("relu in conv", "pool in conv"));
  const std::string bias_only =
      ImageNet("", "", "pool", "param { lr_mult: 0 } param { lr_mult: 1 }");
  EXPECT_THAT(ExpectSame(bias_only), ElementsAre("pool in conv"));
  const std::string below = R"(
layer { name: "data" type: "DummyData" top: "data" top: "target"
        dummy_data_param { shape { dim: 5 dim: 2 dim: 13 dim: 12 } shape { dim: 5 dim: 20 dim: 6 dim: 6 }
          data_filler { type: "gaussian" mean: 0.5 std: 2 } data_filler { type: "uniform" } } }
layer { name: "colours" type: "Convolution" bottom: "data" top: "colours"
        convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "conv" type: "Convolution" bottom: "colours" top: "conv"
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
        pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
)";
  EXPECT_THAT(ExpectSame(below + LossFusion("pool")), ElementsAre("pool in conv"));
}

// Regression: a layer that refused the layer after the ReLU forgot the ReLU, too.
TEST(FusionTest, ARefusalKeepsWhatWasTaken) {
  const std::string norm = "layer { name: 'norm' type: 'LRN' bottom: 'relu' top: 'norm' }\n";
  EXPECT_THAT(ExpectSame(kFusionData + ReluFusion("conv") + norm + LossFusion("norm")),
              ElementsAre("relu in conv"));
  EXPECT_THAT(ExpectSame(kFusionData + kShortcut + Sum("conv", "shortcut") + ReluFusion("sum") +
                         norm + LossFusion("norm")),
              ElementsAre("relu in sum"));
  EXPECT_THAT(ExpectSame(kFusionData + kNorm + ReluFusion("conv") + norm + LossFusion("norm")),
              ElementsAre("relu in bn"));
}

TEST(FusionTest, BatchNormTakesScaleAndReLU) {
  const std::string net = kFusionData + kNorm + kScale;
  EXPECT_THAT(ExpectSame(net + LossFusion("scaled")), ElementsAre("scale in bn"));
  EXPECT_THAT(ExpectSame(net + ReluFusion("scaled") + LossFusion("relu")),
              ElementsAre("scale in bn", "relu in bn"));
  EXPECT_THAT(ExpectSame(net + ReluFusion("scaled") + LossFusion("relu"), caffe::TEST),
              ElementsAre("scale in bn", "relu in bn"));
}

TEST(FusionTest, BatchNormTakesReLUAlone) {
  EXPECT_THAT(ExpectSame(kFusionData + kNorm + ReluFusion("conv") + LossFusion("relu")),
              ElementsAre("relu in bn"));
}

TEST(FusionTest, BatchNormTakesTheSumAfterIt) {
  const std::string net = kFusionData + kShortcut + kNorm + kScale;
  EXPECT_THAT(ExpectSame(net + Sum("shortcut", "scaled") + ReluFusion("sum") + LossFusion("relu")),
              ElementsAre("scale in bn", "sum in bn", "relu in bn"));
  EXPECT_THAT(ExpectSame(net + Sum("scaled", "shortcut") + LossFusion("sum")),
              ElementsAre("scale in bn", "sum in bn"));
  EXPECT_THAT(ExpectSame(kFusionData + kShortcut + kNorm + Sum("shortcut", "conv") +
                         ReluFusion("sum") + LossFusion("relu")),
              ElementsAre("sum in bn", "relu in bn"));
}

// At this size outputs are written past the caches, and 600 channels are more than a block.
TEST(FusionTest, BatchNormTakesTheSumAfterItInAnyNumberOfChannels) {
  TRAINER_CPU_ONLY("its loops take blocks of channels");
  const std::string data = R"(
layer { name: "data" type: "DummyData" top: "data" top: "target"
        dummy_data_param { shape { dim: 75 dim: 2 dim: 75 dim: 1 } shape { dim: 75 dim: 600 dim: 75 dim: 1 }
          data_filler { type: "gaussian" std: 2 } data_filler { type: "uniform" } } })";
  const auto convolution = [](const std::string& name) {
    return Join("layer { name: '", name, "' type: 'Convolution' bottom: 'data' top: '", name,
                "' convolution_param { num_output: 600 kernel_size: 1 bias_term: false "
                "weight_filler { type: 'xavier' } } }\n");
  };
  EXPECT_THAT(ExpectSame(data + convolution("shortcut") + convolution("conv") + kNorm +
                         Sum("conv", "shortcut") + LossFusion("sum")),
              ElementsAre("sum in bn"));
}

TEST(FusionTest, ASumIsTakenOnlyWhenTheOtherInputIsThere) {
  EXPECT_THAT(ExpectSame(kFusionData + kNorm + kScale + kShortcut + Sum("shortcut", "scaled") +
                         ReluFusion("sum") + LossFusion("relu")),
              ElementsAre("scale in bn", "relu in sum"));
}

TEST(FusionTest, SumTakesReLU) {
  EXPECT_THAT(ExpectSame(kFusionData + kShortcut +
                         Sum("conv", "shortcut", "eltwise_param { coeff: 0.5 coeff: -2 }") +
                         ReluFusion("sum") + LossFusion("relu")),
              ElementsAre("relu in sum"));
}

TEST(FusionTest, ReLUTakesDropout) {
  const std::string pool =
      "layer { name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool'"
      "        pooling_param { pool: AVE kernel_size: 3 stride: 1 pad: 1 } }";
  const std::string drop =
      "layer { name: 'drop' type: 'Dropout' bottom: 'relu' top: 'drop'"
      "        dropout_param { dropout_ratio: 0.3 } }";
  EXPECT_THAT(ExpectSame(kFusionData + pool + ReluFusion("pool") + drop + LossFusion("drop")),
              ElementsAre("drop in relu"));
  EXPECT_THAT(
      ExpectSame(kFusionData + pool + ReluFusion("pool") + drop + LossFusion("drop"), caffe::TEST),
      IsEmpty());
}

TEST(FusionTest, WhatAnotherLayerReadsStays) {
  EXPECT_THAT(
      ExpectSame(kFusionData + ReluFusion("conv") + Sum("conv", "relu") + LossFusion("sum")),
      IsEmpty());
  EXPECT_THAT(ExpectSame(kFusionData + kNorm + ReluFusion("conv") +
                         "layer { name: 'other' type: 'Sigmoid' bottom: 'conv' top: 'other' }" +
                         Sum("other", "relu") + LossFusion("sum")),
              IsEmpty());
}

TEST(FusionTest, AReLUWithASlopeStays) {
  EXPECT_THAT(ExpectSame(kFusionData + ReluFusion("conv", "relu_param { negative_slope: 0.1 }") +
                         LossFusion("relu")),
              IsEmpty());
}

// The gradient of a weighted output is set once, and the convolution would mask it in place.
TEST(FusionTest, AWeightedOutputKeepsItsGradient) {
  const std::string view =
      "layer { name: 'view' type: 'Reshape' bottom: 'relu' top: 'view' loss_weight: 0.1"
      "        reshape_param { shape { dim: 0 dim: 0 dim: 0 dim: 0 } } }";
  EXPECT_THAT(ExpectSame(kFusionData + ReluFusion("conv") + view), IsEmpty());
  EXPECT_THAT(ExpectSame(kFusionData + ReluFusion("conv", "loss_weight: 0.1")), IsEmpty());
}

TEST(FusionTest, FrozenWeightsAndADebuggedNetWork) {
  std::string frozen = kFusionData + kNorm + kScale + ReluFusion("scaled") + LossFusion("relu");
  frozen.replace(frozen.find("lr_mult: 1"), 10, "lr_mult: 0");
  EXPECT_THAT(ExpectSame(frozen), ElementsAre("scale in bn", "relu in bn"));
  EXPECT_THAT(ExpectSame("debug_info: true" + frozen), IsEmpty());
}

TEST(FusionTest, ADeviceWithoutTheKernelComputesTheLayersOneByOne) {
  PickyDevice device;
  device.convolutions = false;
  const std::string net = kFusionData + kNorm + kScale + ReluFusion("scaled");
  EXPECT_THAT(
      ExpectSame(kFusionData + ReluFusion("conv") + LossFusion("relu"), caffe::TRAIN, device),
      IsEmpty());
  EXPECT_THAT(ExpectSame(net + LossFusion("relu"), caffe::TRAIN, device),
              ElementsAre("scale in bn", "relu in bn"));
  device.norms = false;
  EXPECT_THAT(ExpectSame(net + LossFusion("relu"), caffe::TRAIN, device), IsEmpty());
}

// Regression: such a device was asked for the sum only, refused, and was not asked for both.
TEST(FusionTest, ADeviceMayHaveAKernelForAllOfAChainAndNoneForItsStart) {
  PickyDevice device;
  device.sums = false;
  const std::string net = kFusionData + kShortcut + kNorm + Sum("shortcut", "conv");
  EXPECT_THAT(ExpectSame(net + LossFusion("sum"), caffe::TRAIN, device), IsEmpty());
  EXPECT_THAT(ExpectSame(net + ReluFusion("sum") + LossFusion("relu"), caffe::TRAIN, device),
              ElementsAre("sum in bn", "relu in bn"));
}

// A plan may cost a search for the fastest algorithm.
TEST(FusionTest, EachPlanIsMadeOnce) {
  const std::string net = kFusionData + kShortcut + kNorm + kScale + Sum("shortcut", "scaled") +
                          ReluFusion("sum") + LossFusion("relu");
  const PickyDevice device;
  RunNet(net, BufferReuse::kShared, caffe::TRAIN, device);
  EXPECT_EQ(device.made, 3);
}

}  // namespace
}  // namespace trainer
