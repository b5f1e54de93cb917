// Layers after an output whose number of rows changes from pass to pass.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/memory_modes.h"
#include "support/error_of.h"
#include "support/layer_runner.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Source(const std::string& name, const std::string& dims) {
  return Join("layer { name: \"", name, "\" type: \"TestSource\" top: \"", name,
              "\" parameter_param { shape { ", dims, " } } }\n");
}

// Layers of all kinds that have a batch: with their own memory, with parameters, in place, with two
// readers, and a loss and a metric that divide by the number of rows.
const char kTail[] = R"(
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "lrn" type: "LRN" bottom: "pool" top: "lrn" }
layer { name: "flat" type: "Flatten" bottom: "lrn" top: "flat" }
layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" }
layer { name: "size" type: "EuclideanLoss" bottom: "ip" bottom: "ip" top: "size" loss_weight: 0.5 }
)";

constexpr int64_t kItem = 2 * 5 * 4;  // numbers in an image
const char kImage[] = " dim: 2 dim: 5 dim: 4";

// A training net with sources whose values a test sets.
class Rig {
 public:
  explicit Rig(const std::string& text, BufferReuse memory = BufferReuse::kPoisoned)
      : spec_(NetFromText(text)) {
    NetOptions options;
    options.state = StateOf(caffe::TRAIN);
    options.training = true;
    options.memory = memory;
    options.log = false;
    net_ = std::make_unique<Net>(spec_, options, *device_, params_);
  }

  void Set(const std::string& source, const std::vector<float>& values) {
    const Param& param = *params_.Find(source + ":0");
    ASSERT_EQ(static_cast<int64_t>(values.size()), param.count()) << source;
    params_.Import(param, values, param.weight);
  }
  float Pass() {
    params_.ClearGradients();
    const float loss = net_->Forward();
    net_->Backward();
    return loss;
  }
  std::vector<float> Gradient(const std::string& key) {
    const Param& param = *params_.Find(key);
    std::vector<float> values(static_cast<size_t>(param.count()));
    params_.Export(param, param.grad, values);
    return values;
  }
  float Output(const std::string& name) const {
    for (const NetOutput& output : net_->outputs()) {
      if (output.name == name) return ReadFloats(*device_, output.value.f32(), 1)[0];
    }
    return -1;
  }
  Net& net() { return *net_; }

 private:
  NetSpec spec_;
  std::unique_ptr<Device> device_ = MakeTestDevice(2);
  ParamStore params_{*device_};
  std::unique_ptr<Net> net_;
};

std::string Filtered(int rows) {
  return Source("images", Join("dim: ", rows, kImage)) + Source("labels", Join("dim: ", rows)) +
         Source("selector", Join("dim: ", rows)) +
         "layer { name: 'filter' type: 'Filter' bottom: 'images' bottom: 'labels' "
         "bottom: 'selector' top: 'x' top: 'label' propagate_down: true propagate_down: false "
         "propagate_down: false }\n" +
         kTail;
}

std::string Direct(int rows) {
  return Source("x", Join("dim: ", rows, kImage)) + Source("label", Join("dim: ", rows)) + kTail;
}

class VaryingTest : public testing::TestWithParam<BufferReuse> {};
INSTANTIATE_TEST_SUITE_P(In, VaryingTest, AllMemoryModes(), NameOfMode);

TEST_P(VaryingTest, ANetBehindAFilterEqualsTheNetOfTheRowsThatPass) {
  constexpr int kRows = 6;
  const std::vector<float> images = LayerRunner::SomeValues(kRows * kItem, 1);
  const std::vector<float> labels = {0, 2, 1, 1, 0, 2};
  Rig filtered(Filtered(kRows), GetParam());
  filtered.Set("images", images);
  filtered.Set("labels", labels);
  for (const std::vector<float>& selector : std::vector<std::vector<float>>{
           {0, 1, 1, 0, 0, 1}, {1, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 0, 0}, {1, 0, 1, 1, 1, 0}}) {
    std::vector<float> x, label;
    for (size_t i = 0; i < kRows; ++i) {
      if (selector[i] == 0) continue;
      const auto start = images.begin() + static_cast<int64_t>(i) * kItem;
      x.insert(x.end(), start, start + kItem);
      label.push_back(labels[i]);
    }
    Rig direct(Direct(static_cast<int>(label.size())), GetParam());
    direct.Set("x", x);
    direct.Set("label", label);
    filtered.Set("selector", selector);
    EXPECT_NEAR(filtered.Pass(), direct.Pass(), 1e-5);
    EXPECT_EQ(filtered.Output("accuracy"), direct.Output("accuracy"));
    for (const char* key : {"conv:0", "conv:1", "scale:0", "scale:1", "ip:0", "ip:1"}) {
      ExpectNear(filtered.Gradient(key), direct.Gradient(key), 1e-5f, key);
    }
    const std::vector<float> dx = direct.Gradient("x:0");
    std::vector<float> wanted(images.size(), 0.0f);
    for (size_t i = 0, row = 0; i < kRows; ++i) {
      if (selector[i] == 0) continue;
      std::copy_n(dx.begin() + static_cast<int64_t>(row++) * kItem, kItem,
                  wanted.begin() + static_cast<int64_t>(i) * kItem);
    }
    ExpectNear(filtered.Gradient("images:0"), wanted, 1e-5f, "images");
  }
}

TEST_P(VaryingTest, WhereNoRowPassesNothingIsComputedAndNothingLearned) {
  Rig rig(Filtered(4), GetParam());
  rig.Set("images", LayerRunner::SomeValues(4 * kItem, 1));
  rig.Set("labels", {0, 1, 2, 0});
  rig.Set("selector", {1, 0, 0, 1});
  const float loss = rig.Pass();
  EXPECT_GT(loss, 0);
  rig.Set("selector", {0, 0, 0, 0});
  EXPECT_EQ(rig.Pass(), 0);
  EXPECT_EQ(rig.Output("accuracy"), 0);
  for (const char* key : {"conv:0", "scale:1", "ip:0", "images:0"}) {
    EXPECT_THAT(rig.Gradient(key), testing::Each(0.0f)) << key;
  }
  rig.Set("selector", {1, 0, 0, 1});
  EXPECT_EQ(rig.Pass(), loss);
}

TEST_P(VaryingTest, AFilterMayFollowAFilter) {
  Rig rig(Source("a", "dim: 4") + Source("first", "dim: 4") + Source("second", "dim: 4") +
              R"(layer { name: "f" type: "Filter" bottom: "a" bottom: "second" bottom: "first"
                   top: "b" top: "s" propagate_down: true propagate_down: false
                   propagate_down: false }
                 layer { name: "g" type: "Filter" bottom: "b" bottom: "s" top: "c" }
                 layer { name: "sum" type: "Reduction" bottom: "c" top: "sum" loss_weight: 1
                   reduction_param { operation: MEAN axis: 0 } })",
          GetParam());
  rig.Set("a", {1, 2, 4, 8});
  rig.Set("first", {1, 1, 0, 1});
  rig.Set("second", {0, 1, 1, 1});
  EXPECT_EQ(rig.Pass(), 5);
  EXPECT_THAT(rig.Gradient("a:0"), testing::ElementsAre(0, 0.5f, 0, 0.5f));
  rig.Set("first", {1, 0, 1, 0});
  EXPECT_EQ(rig.Pass(), 4);
  EXPECT_THAT(rig.Gradient("a:0"), testing::ElementsAre(0, 0, 1, 0));
  rig.Set("first", {1, 0, 0, 0});
  EXPECT_EQ(rig.Pass(), 0);
  EXPECT_THAT(rig.Gradient("a:0"), testing::Each(0.0f));
}

TEST(VaryingNetTest, RefusesInputsThatFitOnlyAtFullSize) {
  Rig rig(Source("images", "dim: 4 dim: 2") + Source("label", "dim: 4") +
          Source("selector", "dim: 4") +
          R"(layer { name: "filter" type: "Filter" bottom: "images" bottom: "selector" top: "x" }
             layer { name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "label" top: "loss" })");
  rig.Set("selector", {1, 1, 1, 1});
  rig.Pass();
  rig.Set("selector", {1, 1, 0, 1});
  const auto [code, text] = ErrorOf([&] { rig.Pass(); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("layer 'loss' (SoftmaxWithLoss)"));
}

}  // namespace
}  // namespace trainer
