#include "trainer/layers/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "support/test_device.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(LayerTest, RefusesAnUnknownTypeWithTheNearestName) {
  const std::string text = RefusalOf(R"(type: "Convolutoin")", {{1, 1, 2, 2}});
  EXPECT_THAT(
      text,
      HasSubstr("net.prototxt:3:1: layer 'it' (Convolutoin): unknown layer type "
                "'Convolutoin'. Did you mean 'Convolution'? 'trainer layers' lists the types"));
}

TEST(LayerTest, RefusesATypeOfAnotherCase) {
  EXPECT_THAT(RefusalOf(R"(type: "relu")", {{2}}), HasSubstr("Did you mean 'ReLU'?"));
}

TEST(LayerTest, RefusesAMissingType) {
  EXPECT_THAT(
      RefusalOf("", {{2}}),
      HasSubstr("net.prototxt:2:1: layer 'it' (): the layer has no type; 'trainer layers' lists"));
}

TEST(LayerTest, RefusesPythonLayers) {
  EXPECT_THAT(RefusalOf(R"(type: "Python")", {{2}}),
              HasSubstr("a net cannot run Python code, because a net is data, not a program"));
}

TEST(LayerTest, ALayerThatBringsDataSaysWhatElseCan) {
  EXPECT_THAT(RefusalOf(R"(type: "Python")", {}, {.outputs = 2}),
              HasSubstr("not a program. It is a data layer: write the data to HDF5 files and read "
                        "them with HDF5Data"));
}

TEST(LayerTest, ATypeOfAForkSaysWhoseItIs) {
  EXPECT_THAT(RefusalOf(R"(type: "VideoData")", {}, {.outputs = 2}),
              HasSubstr("layer 'it' (VideoData): this type belongs to a fork of Caffe (SSD), and "
                        "this program does not have it. It is a data layer"));
  EXPECT_THAT(RefusalOf(R"(type: "Upsample")", {{1, 1, 2, 2}}),
              HasSubstr("(SegNet), and this program does not have it. 'trainer layers'"));
}

TEST(LayerTest, RefusesTooFewAndTooManyBottomsAndTops) {
  EXPECT_THAT(RefusalOf(R"(type: "ReLU")", {{2}, {2}}),
              HasSubstr("layer 'it' (ReLU): it needs 1 bottom, but 2 are"));
  EXPECT_THAT(RefusalOf(R"(type: "ReLU")", {{2}}, {.outputs = 2}), HasSubstr("1 top, but 2 are"));
  EXPECT_THAT(RefusalOf(R"(type: "SoftmaxWithLoss")", {{2}}), HasSubstr("2 bottoms, but 1 is"));
  EXPECT_THAT(RefusalOf(R"(type: "Accuracy")", {{2, 2}, {2}}, {.outputs = 3}),
              HasSubstr("it needs 1 to 2 tops, but 3 are given"));
  EXPECT_THAT(RefusalOf(R"(type: "Convolution")", {}), HasSubstr("at least 1 bottom, but 0 are"));
  EXPECT_THAT(RefusalOf(R"(type: "Input")", {{2}}), HasSubstr("no bottoms, but 1 is"));
}

TEST(LayerTest, EveryTypeHasAPageWhoseMessageExists) {
  for (const std::string& type : LayerRegistry::Get().Names()) {
    if (type.starts_with("Test")) continue;
    SCOPED_TRACE(type);
    const LayerDoc& doc = LayerDocs().at(type);
    EXPECT_FALSE(doc.text.empty());
    const std::string_view first = doc.text.substr(0, doc.text.find('.'));
    EXPECT_THAT(doc.text, testing::ContainsRegex("[Ss]hape|\\(N|[Bb]ottom|[Tt]op"))
        << "what goes in and out";
    EXPECT_LE(first.size(), 120u) << "the first sentence heads a table";
    if (doc.param.empty()) continue;
    EXPECT_NE(caffe::LayerParameter::descriptor()->FindFieldByName(std::string(doc.param)),
              nullptr);
  }
}

// Each call replaces the previous one, so the net can undo a fusion.
TEST(LayerTest, AFusionCanBeRefusedReplacedAndTakenBack) {
  const auto device = MakeTestDevice(1);
  caffe::LayerParameter proto;
  proto.set_type("ReLU");
  const LayerSpec relu(proto, {});
  proto.set_type("LRN");
  const LayerSpec lrn(proto, {});
  using Chain = std::vector<const LayerSpec*>;
  for (const char* text : {R"(type: "Convolution" convolution_param { num_output: 2 kernel_size: 1
                                weight_filler { type: "xavier" } })",
                           R"(type: "BatchNorm")", R"(type: "Eltwise")"}) {
    SCOPED_TRACE(text);
    const bool sum = std::string(text).find("Eltwise") != std::string::npos;
    LayerRunner runner(text, std::vector<Shape>(sum ? 2 : 1, {2, 3, 4, 4}));
    EXPECT_TRUE(runner.layer().Fuse(Chain{}, *device));
    EXPECT_FALSE(runner.layer().Fuse(Chain{&lrn}, *device));
    EXPECT_TRUE(runner.layer().Fuse(Chain{&relu}, *device));
    EXPECT_FALSE(runner.layer().Fuse(Chain{&relu, &relu}, *device));
    EXPECT_TRUE(runner.layer().Fuse(Chain{}, *device));
    runner.SetInput(0, std::vector<float>(96, -1.0f));
    runner.Forward();
    if (sum) {
      EXPECT_EQ(runner.Output()[0], -1);
    }
  }
  LayerRunner alone(R"(type: "Power")", {{2}});
  EXPECT_TRUE(alone.layer().Fuse(Chain{}, *device));
  EXPECT_FALSE(alone.layer().Fuse(Chain{&relu}, *device));
}

TEST(LayerTest, RefusesAPositionForALayerThatKeepsNone) {
  LayerRunner relu(R"(type: "ReLU")", {{2}});
  EXPECT_EQ(relu.layer().SaveState(), "");
  EXPECT_EQ(relu.layer().data_layer(), nullptr);
  EXPECT_NO_THROW(relu.layer().RestoreState(""));
  EXPECT_THAT([&] { relu.layer().RestoreState("1 5 0 key"); },
              testing::ThrowsMessage<Error>(
                  HasSubstr("the snapshot has a position for a layer that has no position")));
}

}  // namespace
}  // namespace trainer
