#include "trainer/config/net_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_testing.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/config/net_layers.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class NetSpecTest : public testing::Test {
 protected:
  NetSpec Load(const std::string& text) { return LoadNet(folder_.Write("n.prototxt", text)); }

  std::vector<std::string> Kept(const NetSpec& net, const std::string& state_text) {
    caffe::NetState state;
    ParseTextString("state", state_text, &state);
    std::vector<std::string> names;
    for (const LayerSpec& layer : FilterLayers(net, state)) names.push_back(layer.name());
    return names;
  }

  TempFolder folder_;
};

TEST_F(NetSpecTest, LayersKnowTheirLines) {
  const NetSpec net = Load(
      "name: 'net'\n"
      "layer {\n"
      "  name: 'conv'\n"
      "  type: 'Convolution'\n"
      "  bottom: 'a' bottom: 'b'\n"
      "  param { lr_mult: 1 }\n"
      "  convolution_param {\n"
      "    num_output: 3\n"
      "    kernel_size: 3 kernel_size: 5\n"
      "  }\n"
      "}\n");
  ASSERT_EQ(net.layers.size(), 1u);
  EXPECT_EQ(net.proto.name(), "net");
  EXPECT_EQ(net.proto.layer_size(), 0);
  const LayerSpec& layer = net.layers[0];
  const std::string file = net.file;
  EXPECT_EQ(layer.Where().ToString(), file + ":2:1");
  EXPECT_EQ(layer.Where("bottom", 1).ToString(), file + ":5:15");
  EXPECT_EQ(layer.Where("top", 0).ToString(), file + ":2:1");
  EXPECT_EQ(layer.WhereIn("convolution_param", "num_output").ToString(), file + ":8:5");
  EXPECT_EQ(layer.WhereIn("convolution_param", "kernel_size", 1).ToString(), file + ":9:20");
  EXPECT_EQ(layer.WhereIn("convolution_param", "stride", 0).ToString(), file + ":7:3");
  EXPECT_EQ(layer.WhereIn("pooling_param", "stride").ToString(), file + ":2:1");
  EXPECT_EQ(layer.WhereIn("param", "lr_mult").ToString(), file + ":6:11");
  EXPECT_EQ(CatchConfig([&] { layer.FailIn("convolution_param", "num_output", "bad"); }).text,
            file + ":8:5: layer 'conv' (Convolution): bad");
  EXPECT_EQ(CatchConfig([&] { layer.Fail("bottom", "bad", 1); }).text,
            file + ":5:15: layer 'conv' (Convolution): bad");
  EXPECT_EQ(Catch([&] { layer.FailWith(ErrorCode::kData, "bad"); }).code, ErrorCode::kData);
  EXPECT_EQ(Catch([&] { layer.Where("strid"); }).code, ErrorCode::kInternal);
}

TEST_F(NetSpecTest, ALayerMadeByTheProgramHasOnlyItsOwnPlace) {
  caffe::LayerParameter proto;
  proto.set_name("s");
  proto.set_type("Split");
  const LayerSpec layer(proto, {"f", 3, 4});
  EXPECT_EQ(layer.Where("bottom", 0).ToString(), "f:3:4");
  EXPECT_EQ(layer.WhereIn("relu_param", "engine").ToString(), "f:3:4");
}

TEST_F(NetSpecTest, PhaseRulesChooseLayers) {
  const NetSpec net = Load(
      "layer { name: 'both' }\n"
      "layer { name: 'train' include { phase: TRAIN } }\n"
      "layer { name: 'test' exclude { phase: TRAIN } }\n"
      "layer { name: 'never' include { phase: TRAIN stage: 'x' } }\n");
  EXPECT_THAT(Kept(net, "phase: TRAIN"), ElementsAre("both", "train"));
  EXPECT_THAT(Kept(net, "phase: TEST"), ElementsAre("both", "test"));
  EXPECT_THAT(Kept(net, "phase: TRAIN stage: 'x'"), ElementsAre("both", "train", "never"));
}

TEST_F(NetSpecTest, LevelsAndStagesChooseLayers) {
  const NetSpec net = Load(
      "layer { name: 'high' include { min_level: 2 } }\n"
      "layer { name: 'low' include { max_level: 1 } }\n"
      "layer { name: 'ab' include { stage: 'a' stage: 'b' } }\n"
      "layer { name: 'not_a' include { not_stage: 'a' } }\n"
      "layer { name: 'a_or_3' include { stage: 'a' } include { min_level: 3 } }\n"
      "layer { name: 'no_b' exclude { stage: 'b' } exclude { min_level: 5 } }\n");
  EXPECT_THAT(Kept(net, "level: 0"), ElementsAre("low", "not_a", "no_b"));
  EXPECT_THAT(Kept(net, "level: 2 stage: 'a'"), ElementsAre("high", "a_or_3", "no_b"));
  EXPECT_THAT(Kept(net, "level: 1 stage: 'b' stage: 'a'"), ElementsAre("low", "ab", "a_or_3"));
  EXPECT_THAT(Kept(net, "level: 5"), ElementsAre("high", "not_a", "a_or_3"));
}

TEST_F(NetSpecTest, KeptLayersGetThePhaseUnlessTheyHaveOne) {
  const NetSpec net = Load("layer { name: 'a' } layer { name: 'b' phase: TRAIN }");
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  const auto layers = FilterLayers(net, state);
  EXPECT_EQ(layers[0].proto().phase(), caffe::TEST);
  EXPECT_EQ(layers[1].proto().phase(), caffe::TRAIN);
}

TEST_F(NetSpecTest, BothKindsOfRulesAreRefused) {
  const NetSpec net = Load(
      "layer {\n name: 'a' type: 'ReLU'\n include { phase: TEST }\n exclude { stage: 's' }\n}");
  EXPECT_EQ(
      CatchConfig([&] { Kept(net, "phase: TEST"); }).text,
      net.file +
          ":4:2: layer 'a' (ReLU): it has include and exclude rules (include in line 3); only "
          "one kind is allowed");
}

class SplitTest : public NetSpecTest {
 protected:
  std::vector<LayerSpec> Split(const std::string& text) {
    net_ = Load(text);
    return ConnectedLayers(net_, {});
  }
  // Returns "name: bottoms -> tops" for each layer.
  static std::vector<std::string> Wiring(const std::vector<LayerSpec>& layers) {
    std::vector<std::string> lines;
    for (const LayerSpec& layer : layers) {
      std::string line = layer.name() + ":";
      for (const std::string& bottom : layer.proto().bottom()) line += " " + bottom;
      line += " ->";
      for (const std::string& top : layer.proto().top()) line += " " + top;
      lines.push_back(line);
    }
    return lines;
  }
  std::string Refusal(const std::string& text) {
    return CatchConfig([&] { Split(text); }).text.substr(folder_.path().size() + 1);
  }

  // Returns the messages of all errors that connecting net_ throws.
  std::vector<std::string> Mistakes(const caffe::NetState& state) {
    std::vector<std::string> lines;
    try {
      ConnectedLayers(net_, state);
    } catch (const ErrorGroup& group) {
      for (const Error& error : group.all()) lines.emplace_back(error.what());
    } catch (const Error& error) {
      lines.emplace_back(error.what());
    }
    return lines;
  }

  NetSpec net_;
};

TEST_F(SplitTest, ABlobWithOneReaderStaysAsItIs) {
  EXPECT_THAT(Wiring(Split("layer { name: 'd' top: 'x' top: 'y' }"
                           "layer { name: 'r' bottom: 'x' top: 'x' }"
                           "layer { name: 's' bottom: 'x' bottom: 'y' top: 'z' }")),
              ElementsAre("d: -> x y", "r: x -> x", "s: x y -> z"));
}

TEST_F(SplitTest, ReadersGetSplitOutputsInTheirOrder) {
  const auto layers = Split(
      "layer { name: 'd' top: 'x' top: 'label' }\n"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' }\n"
      "layer { name: 'acc' bottom: 'y' bottom: 'label' top: 'a' }\n"
      "layer { name: 'loss' bottom: 'y' bottom: 'label' top: 'l' }\n");
  EXPECT_THAT(
      Wiring(layers),
      ElementsAre("d: -> x label", "label_d_1_split: label -> label_d_1_split_0 label_d_1_split_1",
                  "ip: x -> y", "y_ip_0_split: y -> y_ip_0_split_0 y_ip_0_split_1",
                  "acc: y_ip_0_split_0 label_d_1_split_0 -> a",
                  "loss: y_ip_0_split_1 label_d_1_split_1 -> l"));
  EXPECT_EQ(layers[1].type(), "Split");
  EXPECT_EQ(layers[1].Where().line, 1);
  EXPECT_EQ(layers[3].Where().line, 2);
  EXPECT_THAT(layers[1].proto().loss_weight(), IsEmpty());
}

TEST_F(SplitTest, TheLastWriterInPlaceNamesTheSplit) {
  EXPECT_THAT(Wiring(Split("layer { name: 'd' top: 'x' }"
                           "layer { name: 'relu' bottom: 'x' top: 'x' }"
                           "layer { name: 'a' bottom: 'x' top: 'p' }"
                           "layer { name: 'b' bottom: 'x' bottom: 'x' top: 'q' }")),
              ElementsAre("d: -> x", "relu: x -> x",
                          "x_relu_0_split: x -> x_relu_0_split_0 x_relu_0_split_1 x_relu_0_split_2",
                          "a: x_relu_0_split_0 -> p", "b: x_relu_0_split_1 x_relu_0_split_2 -> q"));
}

TEST_F(SplitTest, ALossWeightIsAReaderAndMovesToOutputZero) {
  const auto layers = Split(
      "layer { name: 'd' top: 'x' top: 'y' loss_weight: 0.5 loss_weight: 2 }"
      "layer { name: 'a' bottom: 'x' top: 'p' }");
  EXPECT_THAT(Wiring(layers),
              ElementsAre("d: -> x y", "x_d_0_split: x -> x_d_0_split_0 x_d_0_split_1",
                          "a: x_d_0_split_1 -> p"));
  EXPECT_THAT(layers[0].proto().loss_weight(), ElementsAre(0, 2));
  EXPECT_THAT(layers[1].proto().loss_weight(), ElementsAre(0.5, 0));
}

TEST_F(SplitTest, ALossThatIsReadKeepsItsWeightOfOne) {
  const auto layers = Split(
      "layer { name: 'd' top: 'x' }"
      "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' top: 'loss' }"
      "layer { name: 'p' bottom: 'loss' top: 'q' }");
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_THAT(layers[1].proto().loss_weight(), ElementsAre(0));
  EXPECT_THAT(layers[2].proto().loss_weight(), ElementsAre(1, 0));
}

TEST_F(SplitTest, AnUnknownBottomNamesTheNearestBlob) {
  EXPECT_EQ(Refusal("layer { name: 'd' top: 'conv1' }\n"
                    "layer { name: 'r' type: 'ReLU'\n"
                    "  bottom: 'conv1' bottom: 'cnov1' }"),
            "n.prototxt:3:19: layer 'r' (ReLU): no layer makes bottom 'cnov1'. Did you mean "
            "'conv1'?");
  EXPECT_THAT(Refusal("layer { name: 'r' bottom: 'x' }"), EndsWith("no layer makes bottom 'x'."));
}

TEST_F(SplitTest, AMakerThatARuleLeavesOutIsNamed) {
  net_ = Load(
      "layer { name: 'd' top: 'data'\n  include { phase: TRAIN } }\n"
      "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'y' }");
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  state.add_stage("deploy");
  EXPECT_THAT(CatchConfig([&] { ConnectedLayers(net_, state); }).text,
              EndsWith("n.prototxt:3:32: layer 'r' (ReLU): no layer makes bottom 'data'. layer 'd' "
                       "would, but its include rule (" +
                       net_.file + ":2:3) leaves it out in phase TEST, level 0, stages 'deploy'"));
}

TEST_F(SplitTest, ALayerThatIsLeftOutIsOneMistake) {
  net_ = Load(
      "layer { name: 'd' top: 'data' top: 'label'\n  include { phase: TRAIN } }\n"
      "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'y' }\n"
      "layer { name: 'a' type: 'Accuracy' bottom: 'y' bottom: 'label' top: 'a' }");
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  EXPECT_THAT(Mistakes(state),
              ElementsAre(HasSubstr("no layer makes bottom 'data'. layer 'd' would")));
}

TEST_F(SplitTest, EveryConnectionThatIsWrongIsTold) {
  net_ = Load("layer { name: 'a' bottom: 'p' top: 'x' }\nlayer { name: 'b' bottom: 'q' top: 'x' }");
  EXPECT_THAT(Mistakes({}), ElementsAre(HasSubstr("no layer makes bottom 'p'"),
                                        HasSubstr("no layer makes bottom 'q'"),
                                        HasSubstr("top 'x' is already made by layer 'a'")));
}

TEST_F(NetSpecTest, ControlCharactersOfNamesAreWrittenOut) {
  const NetSpec net = Load(
      "name: 'n\\033[2J'\nlayer { name: 'a\\nb' type: 'T\\t' top: 'x\\033' param { name: 'p\\007' "
      "} }"
      "layer { name: 'c' bottom: 'x\\033' }");
  EXPECT_EQ(net.proto.name(), "n\\x1b[2J");
  EXPECT_EQ(net.layers[0].name(), "a\\x0ab");
  EXPECT_EQ(net.layers[0].type(), "T\\x09");
  EXPECT_EQ(net.layers[0].proto().top(0), net.layers[1].proto().bottom(0));
  EXPECT_EQ(net.layers[0].proto().param(0).name(), "p\\x07");
  EXPECT_THAT(net.upgrades.done,
              ElementsAre(net.file + ": wrote the control characters of 6 names as \\xNN"));
}

TEST_F(SplitTest, ABottomMadeLaterIsRefused) {
  EXPECT_THAT(Refusal("layer { name: 'a' bottom: 'y' top: 'x' }\n"
                      "layer { name: 'b' bottom: 'x' top: 'y' }"),
              HasSubstr("bottom 'y' is made by a later layer, 'b' ("));
  EXPECT_THAT(Refusal("layer { name: 'a' bottom: 'x' top: 'x' }"),
              HasSubstr("bottom 'x' is made by this layer itself and by no layer before it"));
}

TEST_F(SplitTest, ATopMadeTwiceNamesBothPlaces) {
  const std::string refusal = Refusal(
      "layer { name: 'a' top: 'x' }\n"
      "layer { name: 'b' type: 'T'\n bottom: 'x' top: 'y' top: 'x' }");
  EXPECT_THAT(refusal,
              StartsWith("n.prototxt:3:23: layer 'b' (T): top 'x' is already made by layer 'a' ("));
  EXPECT_THAT(refusal,
              HasSubstr("n.prototxt:1:19); give it another name. A layer may overwrite only its "
                        "own input: its top 1 must be its bottom 1, 'none'"));
  EXPECT_THAT(Refusal("layer { name: 'a' top: 'x' top: 'x' }"),
              HasSubstr("already made by layer 'a'"));
}

TEST_F(SplitTest, AForgottenIncludeIsNamedOnceAndWithItsPhase) {
  const std::string train = "layer { name: 'd' top: 'x' top: 'y' include { phase: TRAIN } }\n";
  const std::string test = "layer { name: 'd' top: 'x' top: 'y' include { phase: TEST } }\n";
  const std::string none = "layer { name: 'd' top: 'x' top: 'y' }\n";
  const char* const missing =
      "in phase TRAIN, level 0 both are in the net. The layer in line 2 has no include rule; "
      "maybe include { phase: TEST } is missing there";
  const auto refusal = [&](const std::string& text, caffe::Phase phase) {
    net_ = Load(text);
    caffe::NetState state;
    state.set_phase(phase);
    return CatchConfig([&] { ConnectedLayers(net_, state); }).text;
  };
  EXPECT_THAT(refusal(train + none, caffe::TRAIN),
              AllOf(HasSubstr("top 'x' is already made by layer 'd' ("), HasSubstr(missing),
                    Not(HasSubstr("top 'y'"))));
  EXPECT_THAT(refusal(none + test, caffe::TEST),
              HasSubstr("The layer in line 1 has no include rule; maybe include { phase: TRAIN }"));
  EXPECT_THAT(refusal(none + none, caffe::TRAIN),
              HasSubstr("write include { phase: TRAIN } in the first and "
                        "include { phase: TEST } in the second"));
}

// A blob with several readers gets internal names, which the user never wrote.
TEST_F(SplitTest, MessagesOfLayersNameTheBlobsOfTheFile) {
  net_ = Load(
      "layer { name: 'd' type: 'Input' top: 'x' }\n"
      "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'x' }\n"
      "layer { name: 'a' type: 'T' bottom: 'x' top: 'p' }\n"
      "layer { name: 'b' type: 'T' bottom: 'x' bottom: 'p' top: 'q' }");
  std::vector<std::string> lines;
  for (const LayerSpec& layer : ConnectedLayers(net_, {})) {
    if (layer.name() != "b" && layer.type() != "Split") continue;
    lines.push_back(CatchConfig([&] {
                      layer.Fail("'" + layer.proto().bottom(0) + "' of '" + layer.name() + "', " +
                                 layer.proto().top(layer.proto().top_size() - 1));
                    }).text);
  }
  EXPECT_THAT(lines, ElementsAre(EndsWith(":2:44: layer 'r' (ReLU): 'x' of 'r', x"),
                                 EndsWith(":4:1: layer 'b' (T): 'x' of 'b', q")));
}

}  // namespace
}  // namespace trainer
