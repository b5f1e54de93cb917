// `trainer upgrade`, and old files with the other verbs.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "net.pb.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kOldNet[] =
    "# a comment\n"
    "layers { name: 'd' type: DATA top: 'x' data_param { source: 's' batch_size: 2 scale: 0.5 } }\n"
    "layers { name: 'i' type: INNER_PRODUCT bottom: 'x' top: 'y' blobs_lr: 1\n"
    "  inner_product_param { num_output: 2 } }\n";

class UpgradeVerbTest : public testing::Test {
 protected:
  Outcome Upgrade(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"upgrade"};
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, {.folder = folder_.path()});
  }
  void ExpectRefusal(const Outcome& outcome, int code, const std::string& part) const {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(part)));
    EXPECT_EQ(outcome.out, "");
  }
  TempFolder folder_;
};

TEST_F(UpgradeVerbTest, ReplacesAFileOnlyWithForce) {
  WriteText(folder_ / "old", kOldNet);
  WriteText(folder_ / "new", "precious");
  ExpectRefusal(Upgrade({"old"}), 64, "needs IN and OUT");
  ExpectRefusal(Upgrade({"old", "new"}), 73, "new: the file already exists");
  EXPECT_EQ(ReadText(folder_ / "new"), "precious");
  EXPECT_EQ(Upgrade({"old", "old", "--force"}).exit_code, 0);
  EXPECT_THAT(ReadText(folder_ / "old"), StartsWith("layer {"));
  const Outcome again = Upgrade({"old", "new", "--force"});
  EXPECT_EQ(again.out,
            "the file is already in the current format\n"
            "wrote new (a net)\n");
  EXPECT_EQ(ReadText(folder_ / "new"), ReadText(folder_ / "old"));
}

// Returns the weights of `job`'s net in the old format with numbered types: blobs have four sizes
// and double values.
std::string OldModel(const Job& job, const std::string& model) {
  caffe::NetParameter now, old;
  EXPECT_TRUE(now.ParseFromString(ReadText(job.folder() / model)));
  for (const caffe::LayerParameter& layer : now.layer()) {
    if (layer.blobs_size() == 0) continue;
    caffe::V1LayerParameter* to = old.add_layers();
    to->set_name(layer.name());
    to->set_type(caffe::V1LayerParameter::INNER_PRODUCT);
    for (const caffe::BlobProto& blob : layer.blobs()) {
      caffe::BlobProto* copy = to->add_blobs();
      const auto& dims = blob.shape().dim();
      copy->set_num(1);
      copy->set_channels(1);
      copy->set_height(dims.size() == 2 ? static_cast<int>(dims[0]) : 1);
      copy->set_width(static_cast<int>(dims[dims.size() - 1]));
      for (const float value : blob.data()) copy->add_double_data(value);
    }
  }
  return old.SerializeAsString();
}

// Returns the lines of a test's results, without their prefixes.
std::vector<std::string> Scores(const Job& job, const std::string& weights) {
  const Outcome outcome = RunHere(
      {"test", "--model=net.prototxt", "--weights=" + weights, "--iterations=2"}, job.options());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return LogFrom(outcome, "] Running for");
}

TEST(OldWeightsTest, AreReadByTestAndTrainAndUpgraded) {
  const Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::string model = "snap_iter_20.caffemodel";
  WriteText(job.folder() / "old.caffemodel", OldModel(job, model));
  const std::vector<std::string> scores = Scores(job, model);
  EXPECT_EQ(Scores(job, "old.caffemodel"), scores);

  const Outcome tuned = job.Train({"--weights=old.caffemodel"});
  EXPECT_EQ(tuned.exit_code, 0);
  EXPECT_THAT(tuned.err, AllOf(HasSubstr("old.caffemodel: rewrote 1 layer of the old 'layers'"),
                               HasSubstr("Loaded 1 layer from old.caffemodel")));

  const Outcome upgraded = RunHere({"upgrade", "old.caffemodel", "new.caffemodel"}, job.options());
  EXPECT_EQ(upgraded.out,
            "old.caffemodel: rewrote 1 layer of the old 'layers' format as 'layer'\n"
            "old.caffemodel: rounded double numbers to float in 2 blobs\n"
            "old.caffemodel: wrote the four old sizes as a shape in 2 blobs\n"
            "wrote new.caffemodel (weights)\n");
  EXPECT_EQ(Scores(job, "new.caffemodel"), scores);
}

TEST(ManyWeightsTest, MissingAndLeftOverLayersAreCountedOverAllFiles) {
  Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::string second =
      "layer {\n  name: \"ip2\"\n  type: \"InnerProduct\"\n  bottom: \"ip\"\n  top: \"ip2\"\n  "
      "inner_product_param { num_output: 10 }\n}\n";
  job.net += second;
  const Outcome alone = job.Train({"--weights=snap_iter_20.caffemodel"});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("1 layer of the net is not in the given weights files and will "
                                   "be initialised by the fillers: ip2\n"));
  caffe::NetParameter other;
  caffe::LayerParameter* layer = other.add_layer();
  layer->set_name("ip2");
  for (const int count : {100, 10}) {
    caffe::BlobProto* blob = layer->add_blobs();
    if (count == 100) blob->mutable_shape()->add_dim(10);
    blob->mutable_shape()->add_dim(10);
    for (int i = 0; i < count; ++i) blob->add_data(0);
  }
  *other.add_layer() = *layer;
  other.mutable_layer(1)->set_name("stray");
  WriteText(job.folder() / "other.caffemodel", other.SerializeAsString());
  const Outcome both = job.Train({"--weights=snap_iter_20.caffemodel,other.caffemodel"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.err, Not(HasSubstr("be initialised by the fillers")));
  EXPECT_THAT(both.err, HasSubstr("Ignoring source layers (1) of other.caffemodel: stray\n"));
}

TEST(BadWeightValuesTest, ANumberThatIsNotFiniteIsRefusedNamingBlobAndIndex) {
  const Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  caffe::NetParameter net;
  ASSERT_TRUE(net.ParseFromString(ReadText(job.folder() / "snap_iter_20.caffemodel")));
  net.clear_file_bytes();
  net.clear_crc32c();
  for (caffe::LayerParameter& layer : *net.mutable_layer()) {
    if (layer.name() == "ip") layer.mutable_blobs(1)->set_data(3, HUGE_VALF);
  }
  WriteText(job.folder() / "bad.caffemodel", net.SerializeAsString());
  ExpectRefused(job, job.Train({"--weights=bad.caffemodel"}), 65,
                "bad.caffemodel: layer 'ip', blob 1: number 3 is infinite");
}

}  // namespace
}  // namespace trainer
