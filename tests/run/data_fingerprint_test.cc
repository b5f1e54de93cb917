// Fingerprints of data sets: copies have equal ones, other contents have others.

#include "ranks/data_fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "datum.pb.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class DataFingerprintTest : public testing::Test {
 protected:
  std::string WriteDatabase(const std::string& name, int records, char pixel = 0) const {
    const auto writer = CreateDb("LMDB", folder_ / name);
    for (int i = 0; i < records; ++i) {
      caffe::Datum datum;
      datum.set_channels(1);
      datum.set_height(1);
      datum.set_width(2);
      datum.set_data(std::string(2, static_cast<char>(i + pixel)));
      writer->Put(Join("key", i / 10, i % 10), datum.SerializeAsString());
      if (i % 5 == 0) writer->Commit();
    }
    writer->Commit();
    return folder_ / name;
  }
  // Returns the fingerprint of the only layer.
  DataFingerprint Of(const std::string& type, const std::string& param) const {
    const std::string net = folder_.Write(
        "net.prototxt", Join("layer { name: \"d\" type: \"", type, "\" top: \"x\" ", param, " }"));
    spec_ = LoadNet(net);
    NetUse use;
    use.net = &spec_;
    const std::vector<DataFingerprint> all = FingerprintData(use);
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
  }
  DataFingerprint OfDatabase(const std::string& path) const {
    return Of("Data", Join("data_param { source: \"", path, "\" batch_size: 4 backend: LMDB }"));
  }

  const TempFolder folder_;
  mutable NetSpec spec_;
};

TEST_F(DataFingerprintTest, OfACopyIsTheSame) {
  const std::string a = WriteDatabase("a", 40);
  std::filesystem::copy(a, folder_ / "b", std::filesystem::copy_options::recursive);
  const DataFingerprint print = OfDatabase(a);
  EXPECT_EQ(print.content, OfDatabase(folder_ / "b").content);
  EXPECT_EQ(print.records, 40);
  EXPECT_EQ(print.batch_size, 4u);
  EXPECT_THAT(print.content, StartsWith("40 records 'key00' to 'key39', of which "));
}

TEST_F(DataFingerprintTest, OfOtherRecordsDiffers) {
  const std::string same = OfDatabase(WriteDatabase("a", 40)).content;
  EXPECT_NE(OfDatabase(WriteDatabase("pixels", 40, 1)).content, same);
  EXPECT_NE(OfDatabase(WriteDatabase("fewer", 39)).content, same);
}

TEST_F(DataFingerprintTest, SaysWhyDataCannotBeRead) {
  EXPECT_THAT(OfDatabase(folder_ / "none").content, StartsWith("cannot be read ("));
}

TEST_F(DataFingerprintTest, OfAListCoversTheListAndItsFiles) {
  folder_.Write("p.ppm", "P6 1 1 255\nabc");
  const std::string list = folder_.Write("list", "p.ppm 1\np.ppm 2\n");
  const std::string param = Join("image_data_param { source: \"", list, "\" root_folder: \"",
                                 folder_.path(), "/\" batch_size: 1 }");
  const DataFingerprint print = Of("ImageData", param);
  EXPECT_EQ(print.records, 2);
  EXPECT_THAT(print.content, StartsWith("2 images, checksum of the list and of 2 images "));
  folder_.Write("p.ppm", "P6 1 1 255\nabd");
  EXPECT_NE(Of("ImageData", param).content, print.content);
}

TEST_F(DataFingerprintTest, OfAFolderCoversItsNamesAndImages) {
  for (const char* name : {"in/cat", "in/dog"}) std::filesystem::create_directories(folder_ / name);
  folder_.Write("in/cat/p.ppm", "P6 1 1 255\nabc");
  folder_.Write("in/dog/p.ppm", "P6 1 1 255\nabc");
  const std::string param = Join("image_data_param { source: \"", folder_ / "in", "\" }");
  const DataFingerprint print = Of("ImageData", param);
  EXPECT_EQ(print.records, 2);
  EXPECT_THAT(print.content, StartsWith("2 images, checksum of the list and of 2 images "));
  std::filesystem::rename(folder_ / "in/dog/p.ppm", folder_ / "in/dog/q.ppm");
  EXPECT_NE(Of("ImageData", param).content, print.content);
}

TEST_F(DataFingerprintTest, TellsWhatAnEpochIs) {
  const DataFingerprint print = OfDatabase(WriteDatabase("a", 13));
  EXPECT_THAT(DescribeEpoch(print, 8),
              HasSubstr("a has 13 records: an epoch is 1.625 iterations of 8 records"));
  DataFingerprint unknown = print;
  unknown.records = -1;
  EXPECT_EQ(DescribeEpoch(unknown, 8), "");
}

}  // namespace
}  // namespace trainer
