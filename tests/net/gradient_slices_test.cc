// Gradients are final when the net says so, compared with its backward pass.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/log_collector.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/debug_info.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAre;

// Convolution, BatchNorm, Scale and ReLU, with another convolution between the BatchNorm and the
// Scale that it takes over.
const char kFused[] = R"(
layer { name: "data" type: "DummyData" top: "data" top: "target"
        dummy_data_param { shape { dim: 3 dim: 6 dim: 7 dim: 8 } shape { dim: 3 dim: 20 dim: 7 dim: 8 }
          data_filler { type: "gaussian" mean: 0.5 std: 2 } data_filler { type: "uniform" } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
layer { name: "between" type: "Convolution" bottom: "data" top: "between"
        convolution_param { num_output: 20 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "scale" type: "Scale" bottom: "bn" top: "scale"
        scale_param { bias_term: true filler { type: "uniform" min: -1 max: 2 } } }
layer { name: "relu" type: "ReLU" bottom: "scale" top: "relu" }
layer { name: "sum" type: "Eltwise" bottom: "relu" bottom: "between" top: "sum" }
layer { name: "loss" type: "EuclideanLoss" bottom: "sum" bottom: "target" top: "loss" }
)";

// A weight that two layers use, one that reaches no loss, and one that does not learn.
const char kShared[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "target"
        dummy_data_param { shape { dim: 4 dim: 6 } data_filler { type: "gaussian" } } }
layer { name: "first" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" } param { name: "b" }
        inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "middle" type: "InnerProduct" bottom: "a" top: "m"
        inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "fixed" type: "Scale" bottom: "m" top: "f" param { lr_mult: 0 } scale_param { filler { value: 2 } } }
layer { name: "last" type: "InnerProduct" bottom: "f" top: "l" param { name: "w" } param { name: "b" }
        inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "lost" type: "InnerProduct" bottom: "m" top: "lost"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "l" bottom: "target" top: "loss" }
)";

class Trained {
 public:
  explicit Trained(const std::string& text, bool fuse = true) : spec(NetFromText(text)) {
    NetOptions options = QuietOptions(caffe::TRAIN);
    options.fuse = fuse;
    net = std::make_unique<Net>(spec, options, *device, params);
  }
  std::vector<float> Gradients() const {
    const std::span<const float> all = params.Gradients();
    return ReadFloats(*device, all.data(), static_cast<int64_t>(all.size()));
  }
  std::vector<float> PartOf(const std::vector<float>& all, std::span<const float> slice) const {
    const auto begin = all.begin() + (slice.data() - params.Gradients().data());
    return {begin, begin + static_cast<std::ptrdiff_t>(slice.size())};
  }
  int LayerNamed(const std::string& name) const {
    for (const NodeId id : net->graph().nodes.Ids()) {
      if (net->graph().nodes[id].spec.name() == name) return id.number;
    }
    return -1;
  }

  NetSpec spec;
  std::unique_ptr<Device> device = MakeTestDevice(2);
  ParamStore params{*device};
  std::unique_ptr<Net> net;
};

// Returns for each parameter, "layer:number", the layer with which it is said to be final.
std::map<std::string, std::string> SaidFinal(const Trained& run) {
  std::map<std::string, std::string> said;
  const auto& nodes = run.net->graph().nodes;
  for (const GradientSlice& slice : run.net->gradient_slices()) {
    for (const Param* param : slice.params) {
      said[Join(param->layer, ":", param->index)] =
          slice.final_node == nodes.size() ? "" : nodes[NodeId(slice.final_node)].spec.name();
    }
  }
  return said;
}

// Expects each slice to differ from its final content before its layer runs, and never after.
void ExpectFinalWhenSaid(const std::string& text, bool fuse) {
  const Trained run(text, fuse);
  run.net->Forward();
  run.net->Backward();
  const std::vector<float> last = run.Gradients();
  run.params.Gradients();
  Trained again(text, fuse);
  again.net->Forward();
  const auto check = [&](int layer) {
    const std::vector<float> now = again.Gradients();
    for (size_t s = 0; s < again.net->gradient_slices().size(); ++s) {
      const GradientSlice& slice = again.net->gradient_slices()[s];
      for (const Param* param : slice.params) {
        const std::span<const float> grad(param->grad, static_cast<size_t>(param->count()));
        const bool is_final = again.PartOf(now, grad) == again.PartOf(last, grad);
        EXPECT_EQ(is_final, layer <= slice.final_node)
            << param->layer << ":" << param->index << " when layer " << layer << " ran";
      }
    }
  };
  check(again.net->graph().nodes.size());
  const NodeHook hook = [&](const Net&, NodeId id, Direction, const std::function<void()>& node) {
    node();
    check(id.number);
  };
  again.net->AddHook(&hook);
  again.net->Backward();
}

TEST(GradientSlicesTest, AreFinalWhenTheNetSaysSoAndNoEarlier) {
  for (const bool fuse : {true, false}) {
    ExpectFinalWhenSaid(kFused, fuse);
    ExpectFinalWhenSaid(kShared, fuse);
  }
}

TEST(GradientSlicesTest, AParameterThatWasTakenOverIsFinalWithTheLayerThatTookIt) {
  const Trained fused(kFused), plain(kFused, false);
  ASSERT_EQ(fused.net->graph().nodes[NodeId(fused.LayerNamed("scale"))].fused_into.number,
            fused.LayerNamed("bn"));
  EXPECT_EQ(SaidFinal(fused)["scale:0"], "bn");
  EXPECT_EQ(SaidFinal(plain)["scale:0"], "scale");
}

TEST(GradientSlicesTest, ASharedParameterIsFinalWithTheLastThatAddsToIt) {
  std::map<std::string, std::string> said = SaidFinal(Trained(kShared));
  EXPECT_EQ(said["first:0"], "first");
  EXPECT_EQ(said["middle:1"], "middle");
  EXPECT_EQ(said["lost:0"], "") << "nothing is added to it: it is final before the first layer";
  EXPECT_FALSE(said.contains("fixed:0"));
}

// The order in memory is the order of the slices, so that they join without gaps; the weights have
// the same order.
TEST(GradientSlicesTest, FollowEachOtherInMemory) {
  for (const char* text : {kFused, kShared}) {
    const Trained run(text);
    const float* next = run.params.Gradients().data();
    for (const GradientSlice& slice : run.net->gradient_slices()) {
      EXPECT_EQ(slice.values.data(), next);
      next += slice.values.size();
      for (const Param* param : slice.params) {
        EXPECT_EQ(param->grad - run.params.Gradients().data(),
                  param->weight - run.params.Weights().data());
      }
    }
    EXPECT_EQ(next, run.params.Gradients().data() + run.params.Gradients().size());
  }
}

// Records the slices, their gradients, and the number of log lines before the last slice.
class SliceRecorder final : public GradientSink {
 public:
  explicit SliceRecorder(const Device& device) : device_(device) {}
  void OnGradientReady(int slice, std::span<float> values) override {
    slices.push_back(slice);
    for (const float value :
         ReadFloats(device_, values.data(), static_cast<int64_t>(values.size()))) {
      seen.push_back(value);
    }
    if (log != nullptr) lines_before = log->lines.size();
  }
  std::vector<int> slices;
  std::vector<float> seen;
  const LogCollector* log = nullptr;
  size_t lines_before = 0;

 private:
  const Device& device_;
};

TEST(GradientSlicesTest, ASinkIsToldOfEachOnceWithItsFinalNumbers) {
  const Trained run(kFused);
  SliceRecorder recorder(*run.device);
  run.net->Forward();
  run.net->Run({.mode = Pass::Mode::kBackward, .gradients = &recorder});
  std::vector<int> all(run.net->gradient_slices().size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  EXPECT_GE(all.size(), 3u);
  EXPECT_EQ(recorder.slices, all);
  EXPECT_EQ(recorder.seen, run.Gradients());
}

// The lines of debug_info show this replica's own numbers, so no sum may come between them.
TEST(GradientSlicesTest, ASinkIsToldBehindTheLastLineOfDebugInfo) {
  const Trained run(kShared);
  run.net->AddHook(DebugInfoHook());
  LogCollector log;
  SliceRecorder recorder(*run.device);
  recorder.log = &log;
  run.net->Forward();
  run.net->Run({.mode = Pass::Mode::kBackward, .gradients = &recorder});
  EXPECT_EQ(recorder.slices.size(), run.net->gradient_slices().size());
  EXPECT_EQ(recorder.lines_before, log.lines.size());
}

TEST(GradientSlicesTest, ATestNetHasNone) {
  const Trained run(kShared);
  NetOptions options;
  options.state = StateOf(caffe::TEST);
  options.log = false;
  ParamStore& params = const_cast<ParamStore&>(run.params);
  const Net test(run.spec, options, *run.device, params);
  EXPECT_THAT(test.gradient_slices(), ElementsAre());
}

}  // namespace
}  // namespace trainer
