#include "trainer/checkpoint/upgrade_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "net.pb.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kOldNet[] =
    "# a comment\n"
    "layers { name: 'd' type: DATA top: 'x' data_param { source: 's' batch_size: 2 scale: 0.5 } }\n"
    "layers { name: 'i' type: INNER_PRODUCT bottom: 'x' top: 'y' blobs_lr: 1\n"
    "  inner_product_param { num_output: 2 } }\n";

class UpgradeFileTest : public testing::Test {
 protected:
  std::string Upgrade(const std::string& in, const std::string& out, bool replace = false) const {
    return UpgradeFile(in, out, replace);
  }
  void ExpectRefused(const std::string& in, const std::string& out, ErrorCode code,
                     const std::string& part) const {
    const auto [thrown, message] = ErrorOf([&] { Upgrade(in, out); });
    EXPECT_EQ(thrown, code) << message;
    EXPECT_THAT(message, HasSubstr(part));
  }

  TempFolder folder_;
  std::string out_ = folder_ / "new";
};

TEST_F(UpgradeFileTest, TextStaysTextAndEachChangeIsALine) {
  const std::string old = folder_.Write("old", kOldNet);
  EXPECT_EQ(Upgrade(old, out_),
            Join(old, ": rewrote 2 layers of the old 'layers' format as 'layer'\n",
                 "warning: ", old, ": the comments are lost\nwrote ", out_, " (a net)\n"));
  caffe::NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadText(out_), &net));
  EXPECT_EQ(
      net.ShortDebugString(),
      "layer { name: \"d\" type: \"Data\" top: \"x\" transform_param { scale: 0.5 } data_param "
      "{ source: \"s\" batch_size: 2 } } layer { name: \"i\" type: \"InnerProduct\" bottom: "
      "\"x\" top: \"y\" param { lr_mult: 1 } inner_product_param { num_output: 2 } }");
}

TEST_F(UpgradeFileTest, ReplacesAFileOnlyIfAllowed) {
  const std::string old = folder_.Write("old", kOldNet);
  folder_.Write("new", "precious");
  ExpectRefused(old, out_, ErrorCode::kCannotCreate, "new: the file already exists");
  EXPECT_EQ(ReadText(out_), "precious");
  Upgrade(old, old, true);
  EXPECT_THAT(ReadText(old), StartsWith("layer {"));
  EXPECT_EQ(Upgrade(old, out_, true),
            Join("the file is already in the current format\nwrote ", out_, " (a net)\n"));
  EXPECT_EQ(ReadText(out_), ReadText(old));
}

TEST_F(UpgradeFileTest, RecognizesASolver) {
  const std::string old = folder_.Write("s", "net: 'n'\nbase_lr: 1\nsolver_type: ADAM\n");
  EXPECT_THAT(Upgrade(old, out_), HasSubstr("(a solver)\n"));
  EXPECT_EQ(ReadText(out_), "base_lr: 1\nnet: \"n\"\ntype: \"Adam\"\n");
}

// The weights have numbered layer types and blobs of four sizes in double.
TEST_F(UpgradeFileTest, WeightsStayBinary) {
  caffe::NetParameter old;
  caffe::V1LayerParameter* const layer = old.add_layers();
  layer->set_name("ip");
  layer->set_type(caffe::V1LayerParameter::INNER_PRODUCT);
  for (const int height : {2, 1}) {
    caffe::BlobProto* const blob = layer->add_blobs();
    blob->set_num(1);
    blob->set_channels(1);
    blob->set_height(height);
    blob->set_width(height == 2 ? 3 : 2);
    for (int i = 0; i < (height == 2 ? 6 : 2); ++i) blob->add_double_data(i);
  }
  const std::string in = folder_.Write("old.caffemodel", old.SerializeAsString());
  EXPECT_EQ(Upgrade(in, out_),
            Join(in, ": rewrote 1 layer of the old 'layers' format as 'layer'\n", in,
                 ": rounded double numbers to float in 2 blobs\n", in,
                 ": wrote the four old sizes as a shape in 2 blobs\nwrote ", out_, " (weights)\n"));
  const caffe::NetParameter now = ReadModelAsWritten(out_);
  ASSERT_EQ(now.layer_size(), 1);
  EXPECT_EQ(now.layer(0).type(), "InnerProduct");
  EXPECT_THAT(now.layer(0).blobs(0).data(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(now.layer(0).blobs(0).shape().dim(), ElementsAre(2, 3));
  EXPECT_THAT(now.layer(0).blobs(1).shape().dim(), ElementsAre(2));
}

TEST_F(UpgradeFileTest, LeavesNoFileIfItFails) {
  const std::string bad = folder_.Write("bad", "layers { name: 'r' type: RELOO }\n");
  ExpectRefused(bad, out_, ErrorCode::kConfig, "bad:1:");
  ExpectRefused(folder_ / "absent", out_, ErrorCode::kNoInput, "absent");
  ExpectRefused(bad, folder_ / "nowhere/new", ErrorCode::kConfig, "bad:1:");
  const std::string weights = folder_.Write("weights", std::string("\x0a\x01n\xa2\x06\x20", 6));
  ExpectRefused(weights, out_, ErrorCode::kData, "weights");
  EXPECT_THAT(folder_.Names(), ElementsAre("bad", "weights"));
}

}  // namespace
}  // namespace trainer
