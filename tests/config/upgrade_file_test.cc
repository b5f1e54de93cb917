// Compares old files with the expected files in tests/golden/upgrade, which were written by hand,
// and tests weights in every old format.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include "config_testing.h"
#include "support/error_of.h"
#include "support/source_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/config/upgrade/upgrade.h"

namespace trainer {
namespace {

using google::protobuf::TextFormat;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string GoldenPath(const std::string& name) {
  return SourceFolder() + "/tests/golden/upgrade/" + name;
}

caffe::NetParameter NetOf(const std::string& text) {
  caffe::NetParameter net;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &net)) << text;
  return net;
}

caffe::NetParameter GoldenNet(const std::string& name) {
  return NetOf(ReadFile(GoldenPath(name), 1 << 20));
}

class OldFileTest : public testing::TestWithParam<const char*> {
 protected:
  std::string old_name() const { return std::string(GetParam()) + ".prototxt"; }
  std::string Expected() const {
    return GoldenNet(std::string(GetParam()) + ".expected.prototxt").DebugString();
  }
};

INSTANTIATE_TEST_SUITE_P(Net, OldFileTest, testing::Values("v0", "v1"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(OldFileTest, BecomesWhatTheTableSaysOnDisk) {
  const UpgradedText upgraded = UpgradeText(GoldenPath(old_name()));
  EXPECT_FALSE(upgraded.is_solver);
  EXPECT_EQ(NetOf(upgraded.text).DebugString(), Expected());
  EXPECT_THAT(upgraded.upgrades.warnings, ElementsAre(HasSubstr("the comments are lost")));
}

TEST_P(OldFileTest, BecomesWhatTheTableSaysInMemory) {
  const NetSpec net = LoadNet(GoldenPath(old_name()));
  caffe::NetParameter all = net.proto;
  for (const LayerSpec& layer : net.layers) *all.add_layer() = layer.proto();
  EXPECT_EQ(all.DebugString(), Expected());
  EXPECT_THAT(net.upgrades.warnings, IsEmpty());
}

TEST_P(OldFileTest, BecomesWhatTheTableSaysInAFileOfWeights) {
  caffe::NetParameter net = GoldenNet(old_name());
  UpgradeNet(&net, "old.caffemodel");
  EXPECT_EQ(net.DebugString(), Expected());
}

TEST_P(OldFileTest, StaysAsItIsTheSecondTime) {
  const TempFolder folder;
  const UpgradedText once = UpgradeText(GoldenPath(old_name()));
  const UpgradedText twice = UpgradeText(folder.Write("n", once.text));
  EXPECT_EQ(twice.text, once.text);
  EXPECT_TRUE(twice.upgrades.empty());
}

TEST(UpgradeNotesTest, SayInOneSentenceEachWhatChanged) {
  const std::string v0 = GoldenPath("v0.prototxt"), v1 = GoldenPath("v1.prototxt");
  EXPECT_THAT(UpgradeText(v0).upgrades.done,
              ElementsAre(v0 + ": rewrote 28 layers of the oldest format ('layers { layer { } }')",
                          v0 + ": folded 1 padding layer into the layers that read them",
                          v0 + ": rewrote 27 layers of the old 'layers' format as 'layer'",
                          v0 + ": rewrote the old 'input' fields as an Input layer"));
  EXPECT_THAT(UpgradeText(v1).upgrades.done,
              ElementsAre(v1 + ": rewrote 39 layers of the old 'layers' format as 'layer'",
                          v1 + ": rewrote the old 'input' fields as an Input layer"));
}

TEST(UpgradeNotesTest, AFieldOnTheWrongOldTypeIsDroppedWithAWarning) {
  const TempFolder folder;
  const std::string file = folder.Write(
      "n",
      "layers { layer { name: 'r' type: 'relu' kernelsize: 3 det_crop_mode: 'x' } bottom: 'x' }");
  const UpgradedText upgraded = UpgradeText(file);
  EXPECT_THAT(
      upgraded.upgrades.warnings,
      ElementsAre(file + ":1:1: layer 'r': the field kernelsize has no meaning for the old type "
                         "'relu' and is removed",
                  HasSubstr("the field det_crop_mode has no meaning")));
  EXPECT_EQ(NetOf(upgraded.text).ShortDebugString(),
            "layer { name: \"r\" type: \"ReLU\" bottom: \"x\" }");
}

TEST(UpgradeNotesTest, OldTransformFieldsInANewLayerAreLeftWithAWarning) {
  const TempFolder folder;
  const std::string file = folder.Write(
      "n",
      "layer { name: 'd' type: 'Data' top: 'x'\n  data_param { source: 's' scale: 2 mirror: 1 } }\n"
      "layer { name: 'i' type: 'ImageData' top: 'y' image_data_param { crop_size: 3 } }");
  EXPECT_THAT(
      LoadNet(file).upgrades.warnings,
      ElementsAre(file + ":2:28: layer 'd' (Data): scale, mirror in data_param are ignored, as in "
                         "Caffe; write transform_param { scale: ... mirror: ... } instead",
                  file + ":3:65: layer 'i' (ImageData): crop_size in image_data_param is ignored, "
                         "as in Caffe; write transform_param { crop_size: ... } instead"));
}

TEST(UpgradeSolverTest, RewritesTheTypeAndTheNetsInside) {
  const TempFolder folder;
  const std::string file = folder.Write("s",
                                        "base_lr: 1 solver_type: ADADELTA\n"
                                        "train_net_param { layers { name: 'r' type: RELU } }\n"
                                        "test_net_param { input: 'x' input_dim: [1, 2, 3, 4] }\n");
  const UpgradedText upgraded = UpgradeText(file);
  EXPECT_TRUE(upgraded.is_solver);
  caffe::SolverParameter solver;
  ASSERT_TRUE(TextFormat::ParseFromString(upgraded.text, &solver));
  EXPECT_EQ(solver.ShortDebugString(),
            "base_lr: 1 train_net_param { layer { name: \"r\" type: \"ReLU\" } } test_net_param { "
            "layer { name: \"input\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: "
            "2 dim: 3 dim: 4 } } } } type: \"AdaDelta\"");
  EXPECT_EQ(upgraded.upgrades.done.size(), 3u);
  EXPECT_THAT(upgraded.upgrades.done[0], HasSubstr("solver_type as type: \"AdaDelta\""));
}

TEST(UpgradeSolverTest, RefusesBothFormsOfTheType) {
  const TempFolder folder;
  const std::string file = folder.Write("s", "net: 'n'\ntype: 'Adam'\nsolver_type: ADAM\n");
  EXPECT_THAT(CatchConfig([&] { UpgradeText(file); }).text,
              HasSubstr("s:3:1: solver_type is the old name of type, and both are given"));
}

TEST(UpgradeBlobsTest, WritesEveryOldFormAsShapeAndFloats) {
  caffe::NetParameter net = NetOf(
      "layer { name: 'c' type: 'Convolution'"
      "  blobs { num: 1 channels: 1 height: 1 width: 2 data: [1, 2] diff: [3, 4] }"
      "  blobs { num: 1 channels: 1 height: 1 width: 1 double_data: 0.5 double_diff: 0.25 } }\n"
      "layer { name: 'i' type: 'InnerProduct'"
      "  blobs { num: 1 channels: 1 height: 2 width: 1 data: [1, 2] } }\n"
      "layer { name: 'p' type: 'PReLU' blobs { num: 1 channels: 1 height: 1 width: 1 data: 7 } }\n"
      "layer { name: 'h' type: 'Scale' blobs { shape { dim: 2 } raw_data_type: FLOAT16"
      "  raw_data: '\\000<\\000\\300' raw_diff_type: FLOAT16 raw_diff: '\\000<\\000<' } }");
  const Upgrades upgrades = UpgradeBlobs(&net, "w");
  EXPECT_EQ(
      net.ShortDebugString(),
      "layer { name: \"c\" type: \"Convolution\" blobs { data: 1 data: 2 diff: 3 diff: 4 shape { "
      "dim: 1 dim: 1 dim: 1 dim: 2 } } blobs { data: 0.5 diff: 0.25 shape { dim: 1 } } } "
      "layer { name: \"i\" type: \"InnerProduct\" blobs { data: 1 data: 2 shape { dim: 2 dim: 1 } "
      "} } "
      "layer { name: \"p\" type: \"PReLU\" blobs { num: 1 channels: 1 height: 1 width: 1 data: 7 "
      "} } "
      "layer { name: \"h\" type: \"Scale\" blobs { data: 1 data: -2 diff: 1 diff: 1 shape { dim: "
      "2 } } }");
  EXPECT_THAT(upgrades.done,
              ElementsAre("w: rounded double numbers to float in 1 blob",
                          "w: wrote raw data of type FLOAT16 as plain floats in 1 blob",
                          "w: wrote the four old sizes as a shape in 3 blobs"));
  const std::string once = net.SerializeAsString();
  EXPECT_TRUE(UpgradeBlobs(&net, "w").empty());
  EXPECT_EQ(net.SerializeAsString(), once);
}

TEST(UpgradeBlobsTest, RefusesADamagedArray) {
  caffe::NetParameter net = NetOf("layer { name: 'c' blobs { shape { dim: 2 } data: 1 } }");
  const auto [code, message] = ErrorOf([&] { UpgradeBlobs(&net, "w"); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("w: layer 'c', blob 0: it has 1 numbers"));
}

}  // namespace
}  // namespace trainer
