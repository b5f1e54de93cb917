#include "trainer/inference/predict/feature_extraction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inference/digits_net.h"
#include "support/error_of.h"
#include "support/hdf5_floats.h"
#include "trainer/hdf5/appender.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FeatureExtractionTest : public testing::Test {
 protected:
  FeatureExtractionTest() {
    options_.weights = {digits_.weights()};
    options_.out = {out_};
    options_.replace = true;
  }
  int Extract(const NetSpec& spec, const std::vector<std::string>& blobs, int iterations = 1) {
    InferenceNet net(spec, *digits_.device,
                     {.state = StateOf(caffe::TEST), .memory = BufferReuse::kSeparate});
    options_.blobs = blobs;
    options_.iterations = iterations;
    return ExtractFeatures(net, options_);
  }
  void ExpectRefused(const NetSpec& spec, const std::vector<std::string>& blobs, ErrorCode code,
                     const std::string& part) {
    const auto [thrown, message] = ErrorOf([&] { Extract(spec, blobs); });
    EXPECT_EQ(thrown, code) << message;
    EXPECT_THAT(message, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(out_));
  }

  DigitsNet digits_;
  std::string out_ = digits_.folder() / "f.h5";
  FeatureOptions options_;
};

TEST_F(FeatureExtractionTest, ANetWithDataLayersGivesOneRowPerItem) {
  EXPECT_EQ(Extract(digits_.Load(), {"data", "label", "ip", "loss"}, 2), 2);
  const Hdf5Reader file(out_);
  EXPECT_THAT(file.Array("data").dims(), ElementsAre(32, 1, 28, 28));
  EXPECT_THAT(file.Array("ip").dims(), ElementsAre(32, 10));
  EXPECT_THAT(file.Array("loss").dims(), ElementsAre(2)) << "one row per batch";
  const std::vector<float> labels = Floats(file.Array("label"));
  ASSERT_EQ(labels.size(), 32u);
  const auto cursor = OpenCursor("LMDB", digits_.folder() / "data/test_lmdb");
  for (const float label : labels) {
    caffe::Datum datum;
    datum.ParseFromString(std::string(cursor->Value()));
    EXPECT_EQ(label, static_cast<float>(datum.label()));
    cursor->Next();
  }
}

TEST_F(FeatureExtractionTest, AnInputFileGivesTheValuesOfTheDataLayers) {
  Extract(digits_.Load(), {"data", "ip"});
  std::vector<float> expected;
  {
    const Hdf5Reader given(out_);
    const std::vector<float> data = Floats(given.Array("data"));
    Hdf5Appender input(digits_.folder() / "in.h5");  // the last of 5 batches has 2 of 3 rows
    input.Append("data", std::vector<int64_t>{14, 1, 28, 28}, std::span(data).first(14 * 784));
    expected = Floats(given.Array("ip"));
  }
  options_.input = digits_.folder() / "in.h5";
  EXPECT_EQ(Extract(digits_.LoadDeploy(), {"prob", "ip"}), 5);
  const Hdf5Reader file(out_);
  EXPECT_THAT(file.Array("prob").dims(), ElementsAre(14, 10));
  const std::vector<float> scores = Floats(file.Array("ip"));
  ASSERT_EQ(scores.size(), 140u);
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-5) << i;
}

TEST_F(FeatureExtractionTest, ImagesArePreprocessedAsForClassification) {
  Extract(digits_.Load(), {"data"});
  const std::vector<float> expected = Floats(Hdf5Reader(out_).Array("data"));
  options_.images = digits_.WriteImages(5);
  options_.image_flags.scale = "0.00390625";
  EXPECT_EQ(Extract(digits_.LoadDeploy(), {"data"}), 2);
  const std::vector<float> pixels = Floats(Hdf5Reader(out_).Array("data"));
  ASSERT_EQ(pixels.size(), 5u * 784);
  for (size_t i = 0; i < pixels.size(); ++i) ASSERT_EQ(pixels[i], expected[i]) << i;
  options_.images.push_back(digits_.folder().Write("bad.jpg", "no image"));
  const auto [code, message] = ErrorOf([&] { Extract(digits_.LoadDeploy(), {"prob"}); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("bad.jpg: the file is not an image"));
}

TEST_F(FeatureExtractionTest, RandomInputsDependOnTheSeed) {
  options_.random = true;
  const auto draw = [&](uint64_t seed) {
    options_.seed = seed;
    EXPECT_EQ(Extract(digits_.LoadDeploy(), {"data"}, 3), 3);
    return Floats(Hdf5Reader(out_).Array("data"));
  };
  const std::vector<float> first = draw(1);
  EXPECT_EQ(first.size(), 9u * 784);
  EXPECT_EQ(draw(1), first);
  EXPECT_NE(draw(2), first);
}

TEST_F(FeatureExtractionTest, WritesDatabases) {
  options_.backend = "LEVELDB";
  options_.out = {digits_.folder() / "ip_db", digits_.folder() / "data_db"};
  Extract(digits_.Load(), {"ip", "data"});
  const auto cursor = OpenCursor("LEVELDB", digits_.folder() / "ip_db");
  caffe::Datum datum;
  ASSERT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
  EXPECT_EQ(datum.channels(), 10);
  EXPECT_EQ(datum.float_data_size(), 10);
}

TEST_F(FeatureExtractionTest, RefusesBeforeItWrites) {
  const NetSpec net = digits_.Load(), deploy = digits_.LoadDeploy();
  ExpectRefused(net, {"ipp"}, ErrorCode::kUsage,
                "--blobs: the net has no blob 'ipp'. Did you mean 'ip'?");
  ExpectRefused(deploy, {"ip"}, ErrorCode::kUsage, "--input=FILE.h5 (or .npz), --random or images");
  options_.random = true;
  ExpectRefused(net, {"ip"}, ErrorCode::kUsage, "its data layers read the data");
  options_.random = false;
  options_.input = digits_.folder() / "none.h5";
  ExpectRefused(deploy, {"ip"}, ErrorCode::kNoInput, "none.h5");
  options_.input = net.file;
  ExpectRefused(deploy, {"ip"}, ErrorCode::kData, "not an HDF5 file");
  options_.input.clear();
  options_.backend = "LMDB";
  ExpectRefused(net, {"ip"}, ErrorCode::kUsage, "is the name of a file, but --backend writes ");
  options_.backend = "HDF5";
  options_.out = {out_ + ".txt"};
  ExpectRefused(net, {"ip"}, ErrorCode::kUsage, "the name must end in .h5, .hdf5, .npz or .npy");
  options_.backend = "LMDB";
  options_.out = {digits_.folder() / "db"};
  ExpectRefused(net, {"ip", "data"}, ErrorCode::kUsage, "2 blobs and 1 outputs");
  options_.weights = {net.file};
  ExpectRefused(net, {"ip"}, ErrorCode::kData, "net.prototxt");
  options_.weights.clear();
  ExpectRefused(net, {"ip"}, ErrorCode::kUsage, "without weights they would be random");
}

}  // namespace
}  // namespace trainer
