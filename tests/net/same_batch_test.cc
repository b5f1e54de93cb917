// A second forward pass on one batch is the same function of the weights, and leaves no trace.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "net/memory_modes.h"
#include "support/error_of.h"
#include "support/net_text.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/net/layer_state.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;

// Rows read from a file, in-place layers right after them, dropout, running averages, a recurrent
// layer and a Parameter layer.
constexpr char kSameBatchNet[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" hdf5_data_param { source: "LIST" batch_size: 4 shuffle: true } }
layer { name: "square" type: "Power" bottom: "x" top: "x" power_param { power: 2 scale: 0.1 } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "ip" top: "bn" }
layer { name: "drop" type: "Dropout" bottom: "bn" top: "bn" }
layer { name: "offset" type: "Parameter" top: "offset" parameter_param { shape { dim: 4 dim: 8 } } }
layer { name: "sum" type: "Eltwise" bottom: "bn" bottom: "offset" top: "sum" }
layer { name: "noise" type: "DummyData" top: "cont" top: "target"
        dummy_data_param { shape { dim: 4 dim: 1 } shape { dim: 4 dim: 1 dim: 3 }
          data_filler { type: "constant" value: 1 } data_filler { type: "gaussian" } } }
layer { name: "steps" type: "Reshape" bottom: "sum" top: "steps" reshape_param { shape { dim: 4 dim: 1 dim: 8 } } }
layer { name: "lstm" type: "LSTM" bottom: "steps" bottom: "cont" top: "lstm"
        recurrent_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "lstm" bottom: "target" top: "loss" }
)";

// A copy that counts its forward passes.
class Counted final : public Layer {
 public:
  explicit Counted(const LayerSpec&) {}
  void Setup(SetupContext& plan) override { plan.Output(0, plan.Input(0)); }
  void Forward(const RunContext& run) override {
    ++passes_;
    CopyToNchw(run.device(), run.Input(0), run.Output(0).f32());
  }
  void Backward(const RunContext& run) override {
    CopyToNchw(run.device(), run.GradOutput(0), run.GradInput(0).f32());
  }
  int passes() const { return passes_; }

 private:
  int passes_ = 0;
};
const RegisterLayer<Counted> kCounted("Counted", {.text = "", .param = "", .arity = {}});

// Layers that the weights of `ip` do not reach: with fixed weights, in place, with random numbers,
// with two readers, one of them in place, and a loss.
constexpr char kFrozenNet[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" hdf5_data_param { source: "LIST" batch_size: 4 shuffle: true } }
layer { name: "fixed" type: "InnerProduct" bottom: "x" top: "fixed" param { lr_mult: 0 } param { lr_mult: 0 }
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "fixed" top: "fixed" }
layer { name: "drop" type: "Dropout" bottom: "fixed" top: "fixed" }
layer { name: "counted" type: "Counted" bottom: "fixed" top: "counted" }
layer { name: "goal" type: "Parameter" top: "goal" param { lr_mult: 0 }
        parameter_param { shape { dim: 4 dim: 8 } filler { type: "gaussian" } } }
layer { name: "distance" type: "EuclideanLoss" bottom: "counted" bottom: "goal" top: "distance" }
layer { name: "half" type: "Power" bottom: "counted" top: "half" power_param { scale: 0.5 } }
layer { name: "exp" type: "Exp" bottom: "half" top: "half" }
layer { name: "ip" type: "InnerProduct" bottom: "counted" top: "ip"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "learned" type: "Counted" bottom: "ip" top: "learned" }
layer { name: "loss" type: "EuclideanLoss" bottom: "learned" bottom: "half" top: "loss" }
)";

class SameBatchTest : public testing::TestWithParam<BufferReuse> {
 protected:
  SameBatchTest() {
    Hdf5Appender file(folder_ / "rows.h5");
    std::vector<float> rows;
    for (int i = 0; i < 60; ++i) rows.push_back(static_cast<float>(i * i % 17) - 8);
    file.Append("x", std::vector<int64_t>{10, 6}, rows);
    file.Flush();
    WriteText(folder_ / "list.txt", folder_ / "rows.h5");
    Use(kSameBatchNet);
  }
  void Use(std::string text) {
    text.replace(text.find("LIST"), 4, folder_ / "list.txt");
    spec_ = NetFromText(text);
  }

  struct Made {
    std::unique_ptr<Device> device = MakeTestDevice(2);
    ParamStore params{*device};
    std::unique_ptr<Net> net;
  };
  std::unique_ptr<Made> Make(bool allow_reevaluation = true) const {
    auto made = std::make_unique<Made>();
    NetOptions options = QuietOptions(caffe::TRAIN);
    options.memory = GetParam();
    options.allow_reevaluation = allow_reevaluation;
    made->net = std::make_unique<Net>(spec_, options, *made->device, made->params);
    return made;
  }
  // Returns all that a pass leaves to later ones.
  static std::vector<std::string> Left(const Made& made) {
    std::vector<std::string> left = {Join(made.net->passes())};
    for (const LayerState& state : SaveLayerStates(*made.net)) left.push_back(state.bytes);
    for (const Param* param : made.net->params()) {
      if (param->grad != nullptr) continue;
      for (const float value : WeightOf(*made.device, *param)) left.push_back(Join(value));
    }
    return left;
  }
  static std::vector<float> Gradients(Made& made) {
    made.params.ClearGradients();
    made.net->Backward();
    const std::span<const float> all = made.params.Gradients();
    return ReadFloats(*made.device, all.data(), static_cast<int64_t>(all.size()));
  }

  TempFolder folder_;
  NetSpec spec_;
};

INSTANTIATE_TEST_SUITE_P(In, SameBatchTest, AllMemoryModes(), NameOfMode);

TEST_P(SameBatchTest, GivesTheSameLossAndGradientsBitForBit) {
  const auto made = Make();
  for (int step = 0; step < 3; ++step) {
    const float loss = made->net->Forward();
    const std::vector<float> gradients = Gradients(*made);
    const std::vector<std::string> left = Left(*made);
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(made->net->Forward(Pass::Batch::kSame), loss);
      EXPECT_THAT(Gradients(*made), ElementsAreArray(gradients));
      EXPECT_EQ(Left(*made), left);
    }
  }
}

TEST_P(SameBatchTest, SeesChangedWeights) {
  const auto made = Make();
  const float loss = made->net->Forward();
  for (Param* param : made->net->params()) {
    if (param->layer != "offset") continue;
    std::vector<float> weight = WeightOf(*made->device, *param);
    weight[3] += 1;
    WriteFloats(*made->device, weight, param->weight);
  }
  EXPECT_NE(made->net->Forward(Pass::Batch::kSame), loss);
}

TEST_P(SameBatchTest, DoesNotChangeTheBatchesThatFollow) {
  const auto made = Make(), plain = Make(false);
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(made->net->Forward(), plain->net->Forward());
    made->net->Backward();
    made->net->Forward(Pass::Batch::kSame);
    made->net->Backward();
    EXPECT_EQ(Left(*made), Left(*plain));
  }
}

TEST_P(SameBatchTest, ComputesOnceWhatTheBatchAloneDecides) {
  Use(kFrozenNet);
  const auto made = Make();
  const auto counted = [](const Node& node) {
    return dynamic_cast<Counted&>(*node.layer).passes();
  };
  for (int batch = 1; batch <= 3; ++batch) {
    made->net->Forward();
    for (int again = 0; again < 2; ++again) {
      made->net->Backward();
      made->net->Forward(Pass::Batch::kSame);
    }
    for (const Node& node : made->net->graph().nodes) {
      const std::string& name = node.spec.name();
      if (name == "counted") {
        EXPECT_EQ(counted(node), batch);
      } else if (name == "learned") {
        EXPECT_EQ(counted(node), 3 * batch);
      }
    }
  }
}

// Compares with a net that sees the changed weights from the start and computes everything.
TEST_P(SameBatchTest, WhatIsComputedOnceIsThereForChangedWeights) {
  Use(kFrozenNet);
  const auto made = Make(), plain = Make(false);
  for (int batch = 0; batch < 3; ++batch) {
    made->net->Forward();
    Gradients(*made);
    for (Made* const net : {made.get(), plain.get()}) {
      Param& param = *net->params.Find("ip:0");
      std::vector<float> weight = WeightOf(*net->device, param);
      for (float& number : weight) number += 0.25f;
      WriteFloats(*net->device, weight, param.weight);
    }
    const float expected = plain->net->Forward();
    const std::vector<float> gradients = Gradients(*plain);
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(made->net->Forward(Pass::Batch::kSame), expected);
      EXPECT_THAT(Gradients(*made), ElementsAreArray(gradients));
    }
  }
}

TEST_P(SameBatchTest, IsRefusedByANetThatKeepsNoBatch) {
  const auto made = Make(false);
  made->net->Forward();
  EXPECT_EQ(ErrorOf([&] { made->net->Forward(Pass::Batch::kSame); }).first, ErrorCode::kInternal);
}

}  // namespace
}  // namespace trainer
