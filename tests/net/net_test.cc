// How a net is put together: rules, splits, sharing, gradients, weights.

#include "trainer/net/net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/weights.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Keeps a device, a store and a net together.
struct BuiltNet {
  NetSpec spec;
  std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params{*device};
  std::unique_ptr<Net> net;

  explicit BuiltNet(const std::string& text, bool training = true, int level = 0,
                    std::vector<std::string> stages = {})
      : spec(NetFromText(text)) {
    net = Make(training ? caffe::TRAIN : caffe::TEST, training, level, std::move(stages));
  }

  std::unique_ptr<Net> Make(caffe::Phase phase, bool training, int level = 0,
                            std::vector<std::string> stages = {}) {
    NetOptions options;
    options.state = StateOf(phase, level, std::move(stages));
    options.training = training;
    options.log = false;
    return std::make_unique<Net>(spec, options, *device, params);
  }

  std::vector<std::string> Layers() const {
    std::vector<std::string> names;
    for (const Node& node : net->graph().nodes) names.push_back(node.spec.name());
    return names;
  }
  std::vector<std::string> Backwards() const {
    std::vector<std::string> names;
    for (const Node& node : net->graph().nodes) {
      if (node.has_backward) names.push_back(node.spec.name());
    }
    return names;
  }
};

const std::string kNetData = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
)";

std::string IpNet(const std::string& name, const std::string& bottom, const std::string& top,
                  const std::string& more = "", int outputs = 3) {
  return Join("layer { name: \"", name, "\" type: \"InnerProduct\" bottom: \"", bottom,
              "\" top: \"", top, "\" ", more, " inner_product_param { num_output: ", outputs,
              " weight_filler { type: \"xavier\" } } }\n");
}

std::string LossNet(const std::string& bottom, const std::string& more = "") {
  return Join("layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"", bottom,
              "\" bottom: \"label\" top: \"loss\" ", more, " }\n");
}

TEST(NetTest, ReportsUnreadBlobsInByteOrderOfTheirNames) {
  const BuiltNet b(kNetData + IpNet("z", "x", "zeta") + IpNet("a", "x", "alpha") +
                   IpNet("m", "x", "mid") + LossNet("mid"));
  std::vector<std::string> names;
  for (const NetOutput& output : b.net->outputs()) names.push_back(output.name);
  EXPECT_THAT(names, ElementsAre("alpha", "loss", "zeta"));
  EXPECT_EQ(b.net->outputs()[1].loss_weight, 1);
  EXPECT_EQ(b.net->outputs()[0].loss_weight, 0);
}

TEST(NetTest, InsertsASplitForABlobWithTwoReaders) {
  const BuiltNet b(kNetData + IpNet("a", "x", "a") + IpNet("b", "x", "b") + LossNet("a"));
  EXPECT_THAT(b.Layers(), ElementsAre("data", "x_data_0_split", "a", "b", "loss"));
}

TEST(NetTest, KeepsOnlyLayersWhosePhaseLevelAndStageMatch) {
  const std::string text = kNetData + IpNet("train", "x", "t", "include { phase: TRAIN }") +
                           IpNet("high", "x", "h", "include { min_level: 2 }") +
                           IpNet("staged", "x", "s", "include { stage: \"deploy\" }") +
                           IpNet("not_test", "x", "n", "exclude { phase: TEST }");
  EXPECT_THAT(BuiltNet(text, true).Layers(), testing::Not(testing::Contains("high")));
  EXPECT_THAT(BuiltNet(text, true).Layers(), testing::Contains("train"));
  EXPECT_THAT(BuiltNet(text, false, 2, {"deploy"}).Layers(),
              testing::AllOf(testing::Contains("high"), testing::Contains("staged"),
                             testing::Not(testing::Contains("train")),
                             testing::Not(testing::Contains("not_test"))));
}

TEST(NetTest, ANetWithoutLayersInAPhaseIsRefused) {
  const auto [code, text] = ErrorOf([] {
    BuiltNet(
        "layer { name: \"d\" type: \"Input\" top: \"x\" include { phase: TEST } "
        "input_param { shape { dim: 1 } } }");
  });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("has no layer in phase TRAIN"));
}

TEST(NetTest, SharedParametersAddTheirGradientsIntoTheOwner) {
  const std::string param = "param { name: \"w\" } param { name: \"b\" }";
  BuiltNet shared(kNetData + IpNet("one", "x", "y1", param) + IpNet("two", "y1", "y2", param) +
                  LossNet("y2"));
  ASSERT_EQ(shared.net->params().size(), 2u);
  EXPECT_EQ(shared.net->params()[0]->key, "w");
  EXPECT_EQ(shared.net->params()[0]->layer, "one");
  // This net has separate copies of the same numbers: its two gradients sum to the shared one.
  BuiltNet apart(kNetData + IpNet("one", "x", "y1") + IpNet("two", "y1", "y2") + LossNet("y2"));
  std::vector<Param*> all = apart.net->params();
  for (int copy = 0; copy < 2; ++copy) {
    for (int i = 0; i < 2; ++i) {
      const Param& from = *shared.net->params()[static_cast<size_t>(i)];
      WriteFloats(*apart.device, WeightOf(*shared.device, from),
                  all[static_cast<size_t>(2 * copy + i)]->weight);
    }
  }
  shared.net->Forward();
  shared.net->Backward();
  apart.net->Forward();
  apart.net->Backward();
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<float> sum = GradOf(*shared.device, *shared.net->params()[i]);
    const std::vector<float> one = GradOf(*apart.device, *all[i]);
    const std::vector<float> two = GradOf(*apart.device, *all[i + 2]);
    for (size_t k = 0; k < sum.size(); ++k) EXPECT_NEAR(sum[k], one[k] + two[k], 1e-6);
  }
}

TEST(NetTest, TwoLayersWithoutWeightsMayHaveOneName) {
  const std::string relu = "layer { name: \"same\" type: \"ReLU\" bottom: \"y\" top: \"";
  const BuiltNet b(kNetData + IpNet("one", "x", "y") + relu + "r1\" }" + relu + "r2\" }" +
                   LossNet("r1") +
                   "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"r1\" bottom: \"r2\" "
                   "top: \"second\" }");
  EXPECT_EQ(b.net->outputs().size(), 2u);
}

TEST(NetTest, LayersOfOneNameDrawTheirOwnRandomNumbers) {
  const auto drawn = [](const std::string& top) {
    return Join("layer { name: \"d\" type: \"DummyData\" top: \"", top,
                "\" dummy_data_param { shape { dim: 50 } data_filler { type: \"gaussian\" } } }");
  };
  BuiltNet b(drawn("one") + drawn("two"), false);
  b.net->Forward();
  std::vector<float> one(50), two(50);
  b.net->ReadNchw(b.net->Value("one"), one);
  b.net->ReadNchw(b.net->Value("two"), two);
  EXPECT_NE(one, two);
}

TEST(NetTest, TheNameOfALayerWithWeightsIsItsOwn) {
  for (const std::string& text :
       {kNetData + IpNet("a", "x", "y") +
            "layer { name: \"a\" type: \"ReLU\" bottom: \"y\" top: \"z\" }",
        kNetData + IpNet("a", "x", "y") + IpNet("a", "y", "z"),  // instead of "cannot share"
        kNetData + "layer { name: \"a\" type: \"ReLU\" bottom: \"x\" top: \"z\" }" +
            IpNet("a", "z", "y")}) {
    const auto [code, refusal] = ErrorOf([&] { BuiltNet(text, false); });
    EXPECT_EQ(code, ErrorCode::kConfig);
    EXPECT_THAT(refusal, HasSubstr("layer 'a' ("));
    EXPECT_THAT(refusal, HasSubstr("another layer has this name ("));
    EXPECT_THAT(refusal, HasSubstr("weights are saved by layer name"));
  }
}

TEST(NetTest, SharingRefusesAnotherShapeNamingBothPlaces) {
  const auto [code, text] = ErrorOf([] {
    BuiltNet(kNetData + IpNet("one", "x", "y1", "param { name: \"w\" }") +
             IpNet("two", "x", "y2", "param { name: \"w\" }", 5));
  });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("layer 'two' (InnerProduct)"));
  EXPECT_THAT(text, HasSubstr("cannot share parameter 'w' with layer 'one'"));
  EXPECT_THAT(text, HasSubstr("3 3 (9)"));
  EXPECT_THAT(text, HasSubstr("5 3 (15)"));
}

TEST(NetTest, SharingRefusesTwoLearningRates) {
  const auto [code, text] = ErrorOf([] {
    BuiltNet(kNetData + IpNet("one", "x", "y1", "param { name: \"w\" lr_mult: 1 }") +
             IpNet("two", "x", "y2", "param { name: \"w\" lr_mult: 2 }"));
  });
  EXPECT_THAT(text, HasSubstr("shared parameter 'w' has lr_mult 2 here and 1 in layer 'one'"));
}

TEST(NetTest, TooManyParamEntriesAreRefused) {
  const auto [code, text] =
      ErrorOf([] { BuiltNet(kNetData + IpNet("one", "x", "y", "param {} param {} param {}")); });
  EXPECT_THAT(text, HasSubstr("it has 3 param entries but only 2 parameters"));
}

TEST(NetTest, NothingBeforeTheFirstLearningLayerRunsBackward) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const BuiltNet b(kNetData + IpNet("a", "x", "a", frozen) + IpNet("b", "a", "b") + LossNet("b"));
  EXPECT_THAT(b.Backwards(), ElementsAre("b", "loss"));
  EXPECT_EQ(b.net->params()[0]->grad, nullptr);
}

TEST(NetTest, ForceBackwardReachesTheFirstLayer) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const BuiltNet b("force_backward: true" + kNetData + IpNet("a", "x", "a", frozen) + LossNet("a"));
  EXPECT_THAT(b.Backwards(), ElementsAre("a", "loss"));
  EXPECT_NE(b.net->Gradient("x").data, nullptr);
}

TEST(NetTest, PropagateDownFalseStopsTheGradient) {
  const BuiltNet b(kNetData + IpNet("a", "x", "a") + IpNet("b", "a", "b", "propagate_down: false") +
                   LossNet("b"));
  EXPECT_THAT(b.Backwards(), ElementsAre("b", "loss"));
}

TEST(NetTest, PropagateDownMustMatchTheBottoms) {
  const auto [code, text] = ErrorOf([] {
    BuiltNet(kNetData + IpNet("a", "x", "a", "propagate_down: true propagate_down: true") +
             LossNet("a"));
  });
  EXPECT_THAT(text, HasSubstr("propagate_down is given 2 times for 1 bottoms"));
  const auto [label_code, label_text] = ErrorOf([] {
    BuiltNet(kNetData + IpNet("a", "x", "a") +
             LossNet("a", "propagate_down: true propagate_down: true"));
  });
  EXPECT_THAT(label_text, HasSubstr("bottom 'label' cannot get a gradient from this layer"));
}

TEST(NetTest, WhatNoLossDependsOnDoesNotRunBackward) {
  const BuiltNet b(kNetData + IpNet("a", "x", "a") + IpNet("b", "x", "b") + LossNet("a"));
  EXPECT_THAT(b.Backwards(), ElementsAre("a", "loss"));
}

TEST(NetTest, LossWeightScalesLossAndGradient) {
  BuiltNet one(kNetData + IpNet("a", "x", "a") + LossNet("a"));
  BuiltNet half(kNetData + IpNet("a", "x", "a") + LossNet("a", "loss_weight: 0.5"));
  const float loss = one.net->Forward();
  EXPECT_FLOAT_EQ(half.net->Forward(), 0.5f * loss);
  one.net->Backward();
  half.net->Backward();
  const std::vector<float> g1 = GradOf(*one.device, *one.net->params()[0]);
  const std::vector<float> g2 = GradOf(*half.device, *half.net->params()[0]);
  for (size_t i = 0; i < g1.size(); ++i) EXPECT_NEAR(g2[i], 0.5f * g1[i], 1e-7);
}

TEST(NetTest, ALossLayerWithTwoTopsNeedsItsWeights) {
  const auto [code, text] = ErrorOf([] {
    BuiltNet(kNetData + IpNet("a", "x", "a") +
             "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"a\" bottom: \"label\" "
             "top: \"loss\" top: \"prob\" }");
  });
  EXPECT_THAT(text,
              HasSubstr("needs one loss_weight per top, as in: loss_weight: 1 loss_weight: 0"));
}

TEST(NetTest, ALossLayerWithoutATopStillCounts) {
  BuiltNet b(kNetData + IpNet("a", "x", "a") +
             "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"a\" bottom: \"label\" }");
  EXPECT_GT(b.net->Forward(), 0);
  EXPECT_THAT(b.net->outputs(), IsEmpty());
}

TEST(NetTest, BackwardAddsToParameterGradients) {
  BuiltNet b(R"(layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 }
          data_filler { type: "constant" value: 0.5 }
          data_filler { type: "constant" value: 1 } } })" +
             IpNet("a", "x", "a") + LossNet("a"));
  b.net->Forward();
  b.net->Backward();
  const Param& w = *b.net->params()[0];
  const std::vector<float> once = GradOf(*b.device, w);
  b.net->Forward();
  b.net->Backward();
  const std::vector<float> twice = GradOf(*b.device, w);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_FLOAT_EQ(twice[i], 2 * once[i]);
}

TEST(NetTest, ATestNetUsesTheTrainingNetsWeights) {
  BuiltNet b(kNetData + IpNet("a", "x", "a") + LossNet("a"));
  const auto test = b.Make(caffe::TEST, false);
  ASSERT_EQ(test->params().size(), 2u);
  EXPECT_EQ(test->params()[0]->weight, b.net->params()[0]->weight);
}

TEST(NetTest, WeightsGoOutAndInByLayerName) {
  BuiltNet from(kNetData + IpNet("a", "x", "a") + IpNet("b", "a", "b") + LossNet("b"));
  BuiltNet to(kNetData + IpNet("b", "x", "b") + IpNet("c", "b", "c") + LossNet("c"));
  const LoadReport report = CopyWeights(WeightsOf(*from.net), "from.caffemodel", *to.net);
  EXPECT_THAT(report.loaded, ElementsAre("b"));
  EXPECT_THAT(report.missing, ElementsAre("c"));
  EXPECT_THAT(report.unused, ElementsAre("a"));
  const Param& source = *from.net->params()[2];
  const Param& target = *to.net->params()[0];
  EXPECT_EQ(WeightOf(*to.device, target), WeightOf(*from.device, source));
}

TEST(NetTest, WeightsOfAnotherShapeAreRefusedNamingBoth) {
  BuiltNet from(kNetData + IpNet("a", "x", "a", "", 7));
  BuiltNet to(kNetData + IpNet("a", "x", "a"));
  const auto [code, text] =
      ErrorOf([&] { CopyWeights(WeightsOf(*from.net), "from.caffemodel", *to.net); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(text, HasSubstr("from.caffemodel: layer 'a', blob 0: its shape is 7 3 (21)"));
  EXPECT_THAT(text, HasSubstr("3 3 (9)"));
}

TEST(NetTest, AnInnerProductOverAnImageKeepsTheFilesColumnOrder) {
  const std::string image = R"(layer { name: "data" type: "DummyData" top: "x"
      dummy_data_param { shape { dim: 2 dim: 3 dim: 2 dim: 2 } data_filler { type: "gaussian" } } })";
  BuiltNet a(image + IpNet("ip", "x", "y", "", 2));
  const caffe::NetParameter file = WeightsOf(*a.net);
  BuiltNet b(image + IpNet("ip", "x", "y", "", 2));
  CopyWeights(file, "f", *b.net);
  EXPECT_EQ(WeightsOf(*b.net).SerializeAsString(), file.SerializeAsString());
  // y = W x in (C, H, W) order, whatever the order in memory.
  a.net->Forward();
  std::vector<float> x(24), y(4);
  a.net->ReadNchw(a.net->Value("y"), y);
  BuiltNet keep(image);
  const caffe::BlobProto& w = file.layer(1).blobs(0);
  keep.net->Forward();
  keep.net->ReadNchw(keep.net->Value("x"), x);
  for (size_t n = 0; n < 2; ++n) {
    for (int m = 0; m < 2; ++m) {
      float sum = 0;
      for (int k = 0; k < 12; ++k) sum += w.data(m * 12 + k) * x[n * 12 + static_cast<size_t>(k)];
      EXPECT_NEAR(y[n * 2 + static_cast<size_t>(m)], sum, 1e-5);
    }
  }
}

TEST(NetTest, TheSameSeedGivesTheSameWeightsWhateverOtherLayersThereAre) {
  BuiltNet small(kNetData + IpNet("a", "x", "a"));
  BuiltNet large(kNetData + IpNet("other", "x", "o") + IpNet("a", "x", "a"));
  const Param& one = *small.net->params()[0];
  const Param& two = *large.net->params()[2];
  EXPECT_EQ(WeightOf(*small.device, one), WeightOf(*large.device, two));
}

}  // namespace
}  // namespace trainer
