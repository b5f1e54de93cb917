#include "trainer/config/upgrade/upgrade.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "config/config_testing.h"

namespace trainer {
namespace {

using google::protobuf::TextFormat;
using testing::ElementsAre;
using testing::HasSubstr;

class UpgradeTest : public testing::Test {
 protected:
  NetSpec Load(const std::string& text) { return LoadNet(folder_.Write("n.prototxt", text)); }
  std::string Refusal(const std::string& text) {
    return CatchConfig([&] { Load(text); }).text.substr(folder_.path().size() + 1);
  }
  // Returns the layers as one-line text.
  static std::vector<std::string> Text(const NetSpec& net) {
    std::vector<std::string> lines;
    for (const LayerSpec& layer : net.layers) lines.push_back(layer.proto().ShortDebugString());
    return lines;
  }

  TempFolder folder_;
};

TEST_F(UpgradeTest, NumberedTypesAndFlatParamsBecomeToday) {
  const NetSpec net = Load(
      "layers {\n"
      "  name: 'c' type: CONVOLUTION bottom: 'd' top: 'c'\n"
      "  blobs_lr: 1 blobs_lr: 2 weight_decay: 1 weight_decay: 0\n"
      "  param: 'w' param: 'b' blob_share_mode: PERMISSIVE\n"
      "  convolution_param {\n"
      "    num_output: 4 kernel_size: 3\n"
      "  }\n"
      "  include { phase: TEST }\n"
      "}\n"
      "layers { name: 'l' type: SOFTMAX_LOSS bottom: 'c' loss_weight: 0.3 }\n");
  EXPECT_THAT(
      Text(net),
      ElementsAre("name: \"c\" type: \"Convolution\" bottom: \"d\" top: \"c\" "
                  "param { name: \"w\" share_mode: PERMISSIVE lr_mult: 1 decay_mult: 1 } "
                  "param { name: \"b\" lr_mult: 2 decay_mult: 0 } "
                  "include { phase: TEST } convolution_param { num_output: 4 kernel_size: 3 }",
                  "name: \"l\" type: \"SoftmaxWithLoss\" bottom: \"c\" loss_weight: 0.3"));
  EXPECT_EQ(net.layers[0].Where().line, 1);
  EXPECT_EQ(net.layers[0].Where("top", 0).line, 2);
  EXPECT_EQ(net.layers[0].WhereIn("convolution_param", "kernel_size", 0).ToString(),
            net.file + ":6:19");
}

TEST_F(UpgradeTest, TransformFieldsOfOldDataLayersMove) {
  EXPECT_THAT(
      Text(Load("layers { name: 'd' type: DATA top: 'x' data_param { source: 's' "
                "scale: 0.5 mean_file: 'm' crop_size: 7 mirror: true batch_size: 2 } }")),
      ElementsAre("name: \"d\" type: \"Data\" top: \"x\" transform_param { scale: 0.5 mirror: "
                  "true crop_size: 7 mean_file: \"m\" } data_param { source: \"s\" "
                  "batch_size: 2 }"));
}

TEST_F(UpgradeTest, TheOldestFormIsReadToo) {
  EXPECT_THAT(
      Text(Load(
          "layers { layer { name: 'd' type: 'data' source: 's' batchsize: 3 cropsize: 5 } top: 'x' "
          "}\n"
          "layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'x' top: 'px' }\n"
          "layers { layer { name: 'c' type: 'conv' num_output: 4 kernelsize: 5 stride: 2 group: 2 "
          "biasterm: false blobs_lr: 1 weight_decay: 0 } bottom: 'px' top: 'c' }\n"
          "layers { layer { name: 'q' type: 'pool' pool: AVE kernelsize: 3 } bottom: 'c' top: 'q' "
          "}\n"
          "layers { layer { name: 'i' type: 'innerproduct' num_output: 9 } bottom: 'q' top: 'i' "
          "}\n")),
      ElementsAre(
          "name: \"d\" type: \"Data\" top: \"x\" transform_param { crop_size: 5 } data_param "
          "{ source: \"s\" batch_size: 3 }",
          "name: \"c\" type: \"Convolution\" bottom: \"x\" top: \"c\" param { lr_mult: 1 "
          "decay_mult: 0 } convolution_param { num_output: 4 bias_term: false pad: 2 "
          "kernel_size: 5 group: 2 stride: 2 }",
          "name: \"q\" type: \"Pooling\" bottom: \"c\" top: \"q\" pooling_param { pool: AVE "
          "kernel_size: 3 }",
          "name: \"i\" type: \"InnerProduct\" bottom: \"q\" top: \"i\" inner_product_param { "
          "num_output: 9 }"));
}

TEST_F(UpgradeTest, InputFieldsBecomeAnInputLayerInFront) {
  EXPECT_THAT(Text(Load("input: 'a' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4\n"
                        "layer { name: 'r' }")),
              ElementsAre("name: \"input\" type: \"Input\" top: \"a\" input_param { shape { dim: 1 "
                          "dim: 2 dim: 3 dim: 4 } }",
                          "name: \"r\""));
  EXPECT_THAT(
      Text(Load("input: 'a' input: 'b' input_shape { dim: 5 } input_shape { dim: 6 }")),
      ElementsAre("name: \"input\" type: \"Input\" top: \"a\" top: \"b\" input_param { shape { "
                  "dim: 5 } shape { dim: 6 } }"));
  EXPECT_TRUE(Load("input: 'a'").layers.empty());
}

TEST_F(UpgradeTest, ABatchNormWithThreeParamsIsFrozen) {
  EXPECT_THAT(
      Text(Load("layer { type: 'BatchNorm' param { name: 'm' } param { lr_mult: 3 } param { } "
                "}")),
      ElementsAre("type: \"BatchNorm\" param { name: \"m\" lr_mult: 0 decay_mult: 0 } param { "
                  "lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 }"));
  EXPECT_THAT(Text(Load("layer { type: 'BatchNorm' param { lr_mult: 3 } }")),
              ElementsAre("type: \"BatchNorm\" param { lr_mult: 3 }"));
  EXPECT_THAT(Text(Load("layer { type: 'BatchNorm' param { lr_mult: 1 } param { } param { } "
                        "param { lr_mult: 2 } batch_norm_param { scale_bias: true } }")),
              ElementsAre("type: \"BatchNorm\" param { lr_mult: 0 decay_mult: 0 } param { "
                          "lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 } param { "
                          "lr_mult: 2 } batch_norm_param { scale_bias: true }"));
}

TEST_F(UpgradeTest, RefusesWhatCannotBeRewritten) {
  EXPECT_EQ(
      Refusal("layer { name: 'a' }\nlayers { name: 'b' type: RELU }"),
      "n.prototxt:2:1: 'layers' (the old format) and 'layer' (first in line 1) cannot be mixed: "
      "write all as 'layer'");
  EXPECT_THAT(Refusal("layers { name: 'b' }"),
              HasSubstr("n.prototxt:1:1: layer 'b' has no type; write e.g. type: CONVOLUTION"));
  EXPECT_THAT(Refusal("layers { layer { name: 'c' type: 'covn' } }"),
              HasSubstr("layer 'c' has the unknown type 'covn'. Did you mean 'conv'?"));
  EXPECT_THAT(
      Refusal("layers { layer { name: 'p' type: 'padding' } bottom: 'x' top: 'y' }\n"
              "layers { layer { name: 'r' type: 'relu' } bottom: 'y' top: 'z' }"),
      HasSubstr("1:1: the old layer 'p' (padding) needs one input and a reader of type conv"));
  EXPECT_THAT(Refusal("input: 'a' input_dim: 1"),
              HasSubstr("1:1: 1 inputs need 4 input_dim; there are 1"));
}

TEST_F(UpgradeTest, BinaryNetsAreRewrittenInPlace) {
  caffe::NetParameter net;
  ASSERT_TRUE(TextFormat::ParseFromString(
      "name: 'n' input: 'x' layers { name: 'i' type: INNER_PRODUCT blobs { data: 5 } }", &net));
  UpgradeNet(&net, "old.caffemodel");
  EXPECT_EQ(net.ShortDebugString(),
            "name: \"n\" layer { name: \"i\" type: \"InnerProduct\" blobs { data: 5 } }");
  const std::string once = net.ShortDebugString();
  UpgradeNet(&net, "old.caffemodel");
  EXPECT_EQ(net.ShortDebugString(), once);
}

}  // namespace
}  // namespace trainer
