// Tests databases of pictures, and their mean.

#include "trainer/datasets/from_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "storage/test_data.h"
#include "trainer/datasets/mean.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImagesTest : public testing::Test {
 protected:
  ImagesTest() {
    for (const char* name : {"rgb.png", "gray.jpg", "turned5.jpg"}) {
      WriteBytes(folder_ / name, Picture(name));
    }
    WriteBytes(list_, "rgb.png 1\ngray.jpg 2\n");
  }
  ImagesOptions Options(const std::string& database = "db") const {
    ImagesOptions options;
    options.root = folder_ / "";
    options.list = list_;
    options.output.path = folder_ / database;
    return options;
  }
  std::vector<std::pair<std::string, caffe::Datum>> Read(const std::string& database = "db") const {
    std::vector<std::pair<std::string, caffe::Datum>> records;
    const auto cursor = OpenCursor("LMDB", folder_ / database);
    do {
      caffe::Datum datum;
      EXPECT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
      records.emplace_back(cursor->Key(), datum);
    } while (!cursor->Next());
    return records;
  }

  TempFolder folder_;
  std::string list_ = folder_ / "list.txt";
};

TEST_F(ImagesTest, APgmFileThatBecomesAColorImageIsStoredAsPng) {
  WriteBytes(folder_ / "gray.pgm", "P5 2 1 255\nab");
  WriteBytes(list_, "gray.pgm 3\n");
  ImagesOptions options = Options();
  options.encoded = true;
  EXPECT_EQ(WriteImages(options).records, 1);
  const std::string stored = Read()[0].second.data();
  EXPECT_TRUE(stored.starts_with("\x89PNG"));
  Image image;
  DecodeImage(stored, ColorMode::kAsStored, {}, "it", &image);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(std::string(image.pixels.begin(), image.pixels.end()), "ababab");
}

TEST_F(ImagesTest, SeveralLabelsOfAListAreStored) {
  WriteBytes(list_, "rgb.png 1 0.5\ngray.jpg 2 -1\n");
  EXPECT_EQ(WriteImages(Options()).records, 2);
  const caffe::Datum datum = Read()[1].second;
  EXPECT_FALSE(datum.has_label());
  EXPECT_THAT(datum.labels(), ElementsAre(2, -1));
}

// The first value of gray16.png is 0x6586.
TEST_F(ImagesTest, All16BitsAreStored) {
  WriteBytes(folder_ / "gray16.png", Picture("gray16.png"));
  WriteBytes(list_, "gray16.png 3\n");
  ImagesOptions options = Options();
  options.gray = true;
  WriteImages(options);
  EXPECT_TRUE(Read()[0].second.data().empty());
  EXPECT_FLOAT_EQ(Read()[0].second.float_data(0), 0x6586 / 257.f);

  options.output.path = folder_ / "encoded";
  options.encoded = true;
  WriteImages(options);
  EXPECT_EQ(Read("encoded")[0].second.data(), Picture("gray16.png"));

  options.output.path = folder_ / "larger";
  options.height = options.width = 22;
  options.fit = ImageFit::kPad;
  WriteImages(options);
  Image image;
  DecodeImage(Read("larger")[0].second.data(), ColorMode::kAsStored, {}, "it", &image,
              BitDepth::kFloats);
  ASSERT_EQ(image.floats.size(), 22u * 22u);
  EXPECT_TRUE(std::ranges::any_of(image.floats, [](float v) { return v != std::floor(v); }));
  EXPECT_EQ(image.floats[0], 0) << "above the image";

  options.output.path = folder_ / "jpeg";
  options.encode_type = "jpg";
  EXPECT_THAT(Catch([&] { WriteImages(options); }),
              Refuses(ErrorCode::kUsage, "16 bits per channel cannot be encoded as JPEG"));
}

TEST_F(ImagesTest, ASetWithBothDepthsIsRefused) {
  WriteBytes(folder_ / "gray16.png", Picture("gray16.png"));
  WriteBytes(list_, "rgb.png 1\ngray16.png 3\n");
  EXPECT_THAT(Catch([&] { WriteImages(Options()); }),
              Refuses(ErrorCode::kData,
                      "list.txt:2: 'gray16.png' has 16 bits per channel, but the first image has "
                      "8; convert the images"));
}

TEST_F(ImagesTest, WritesPixelsUnderCaffesKeys) {
  const ImagesResult result = WriteImages(Options());
  EXPECT_EQ(result.records, 2);
  EXPECT_EQ(result.skipped, 0);
  const auto records = Read();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].first, "00000000_rgb.png");
  EXPECT_EQ(records[1].first, "00000001_gray.jpg");
  Image want;
  DecodeImage(Picture("rgb.png"), ColorMode::kColor, {}, "it", &want);
  EXPECT_EQ(records[0].second.data(), std::string(want.pixels.begin(), want.pixels.end()));
  for (const auto& [key, datum] : records) {
    EXPECT_EQ(datum.channels(), 3);
    EXPECT_EQ(datum.height(), 7);
    EXPECT_EQ(datum.width(), 11);
    EXPECT_FALSE(datum.encoded());
  }
  EXPECT_EQ(records[1].second.label(), 2);
}

TEST_F(ImagesTest, ResizesAndMakesGrey) {
  ImagesOptions options = Options();
  options.root.pop_back();  // without its '/'
  options.gray = true;
  options.height = 4;
  options.width = 5;
  WriteImages(options);
  EXPECT_EQ(Read()[0].second.channels(), 1);
  EXPECT_EQ(Read()[0].second.data().size(), 20u);
}

TEST_F(ImagesTest, EncodedKeepsTheFilesBytesWhereTheyGiveThePicture) {
  ImagesOptions options = Options();
  options.encoded = true;
  WriteImages(options);
  const auto records = Read();
  EXPECT_TRUE(records[0].second.encoded());
  EXPECT_EQ(records[0].second.data(), Picture("rgb.png"));
  EXPECT_NE(records[1].second.data(), Picture("gray.jpg"));  // must become 3 channels
  Image image;
  DecodeImage(records[1].second.data(), ColorMode::kAsStored, {}, "it", &image);
  EXPECT_EQ(image.channels, 3);
}

TEST_F(ImagesTest, EncodesToTheWantedType) {
  Image want;
  DecodeImage(Picture("turned5.jpg"), ColorMode::kColor, {}, "it", &want);
  WriteBytes(list_, "turned5.jpg 0\n");
  for (const char* type : {"png", "jpg"}) {
    ImagesOptions options = Options(type);
    options.encode_type = type;
    options.height = want.height;  // forces a new encoding
    options.width = want.width;
    WriteImages(options);
    Image image;
    DecodeImage(Read(type)[0].second.data(), ColorMode::kAsStored, {}, "it", &image);
    ASSERT_EQ(image.pixels.size(), want.pixels.size());
    double difference = 0;
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      difference += std::abs(image.pixels[i] - want.pixels[i]);
    }
    difference /= static_cast<double>(image.pixels.size());
    EXPECT_LE(difference, type == std::string("png") ? 0 : 12);
  }
  ImagesOptions options = Options("other");
  options.encode_type = "gif";
  EXPECT_THAT(Catch([&] { WriteImages(options); }),
              Refuses(ErrorCode::kUsage, "cannot be encoded as 'gif'; choose jpg or png"));
}

TEST_F(ImagesTest, ShufflesAsTheSeedSays) {
  std::string list;
  for (int i = 0; i < 12; ++i) list += "rgb.png " + std::to_string(i) + "\n";
  WriteBytes(list_, list);
  const auto labels = [&](const std::string& database, uint64_t seed) {
    ImagesOptions options = Options(database);
    options.shuffle = true;
    options.seed = seed;
    WriteImages(options);
    std::vector<int> all;
    for (const auto& [key, datum] : Read(database)) all.push_back(datum.label());
    return all;
  };
  const std::vector<int> first = labels("a", 1);
  // permutation() in scripts/golden/philox.py computed the order.
  EXPECT_THAT(first, testing::ElementsAre(0, 4, 1, 8, 6, 10, 3, 9, 2, 5, 7, 11));
  EXPECT_EQ(labels("b", 1), first);
  EXPECT_NE(labels("c", 2), first);
}

TEST_F(ImagesTest, LogsAndSkipsUnreadableFiles) {
  WriteBytes(list_, "none.png 0\nrgb.png 1\nlist.txt 2\n");
  const LogLines log;
  const ImagesResult result = WriteImages(Options());
  EXPECT_EQ(result.records, 1);
  EXPECT_EQ(result.skipped, 2);
  EXPECT_EQ(Read()[0].first, "00000001_rgb.png");
  EXPECT_THAT(log.Get(), testing::Contains(HasSubstr("list.txt:1: cannot read the image: ")));
  EXPECT_THAT(log.Get(), testing::Contains(HasSubstr("is not an image")));
  WriteBytes(list_, "none.png 0\n");
  EXPECT_THAT(Catch([&] { WriteImages(Options("empty")); }),
              Refuses(ErrorCode::kData, "none of the 1 images could be read"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "empty"));
}

TEST_F(ImagesTest, RefusesOtherSizesOnRequest) {
  WriteBytes(list_, "rgb.png 1\nturned5.jpg 2\n");
  ImagesOptions options = Options();
  options.check_size = true;
  EXPECT_THAT(
      Catch([&] { WriteImages(options); }),
      Refuses(ErrorCode::kData, "the image is 7x11 pixels, but the first one 11x7; resize"));
  options.width = 5;
  EXPECT_THAT(Catch([&] { WriteImages(options); }),
              Refuses(ErrorCode::kUsage,
                      "--resize_height and --resize_width need each other; "
                      "give both or none"));
}

// --- The mean ---

TEST_F(ImagesTest, MeanOfHandValues) {
  WriteDb("LMDB", folder_ / "db",
          {{"a", MakeDatum(2, 1, 2, std::string("\0\x02\x10\xff", 4), 0).SerializeAsString()},
           {"b", MakeDatum(2, 1, 2, std::string("\x01\x04\x20\xff", 4), 0).SerializeAsString()}});
  const MeanResult result = WriteMean(folder_ / "db", folder_ / "mean.binaryproto");
  EXPECT_EQ(result.records, 2);
  EXPECT_EQ(result.shape, "2x1x2");
  EXPECT_THAT(result.values, ElementsAre(1.75f, 139.5f));
  caffe::BlobProto blob;
  ASSERT_TRUE(blob.ParseFromString(ReadBytes(folder_ / "mean.binaryproto")));
  EXPECT_EQ(blob.num(), 1);
  EXPECT_EQ(blob.channels(), 2);
  EXPECT_EQ(blob.height(), 1);
  EXPECT_EQ(blob.width(), 2);
  EXPECT_THAT(blob.data(), ElementsAre(0.5f, 3, 24, 255));
}

TEST_F(ImagesTest, MeanOfEncodedRecordsIsThatOfTheirPixels) {
  WriteBytes(list_, "rgb.png 1\nrgb.png 2\n");
  WriteImages(Options("raw"));
  ImagesOptions options = Options("files");
  options.encoded = true;
  WriteImages(options);
  WriteMean(folder_ / "raw", folder_ / "raw.mean");
  WriteMean(folder_ / "files", folder_ / "files.mean");
  EXPECT_EQ(ReadBytes(folder_ / "raw.mean"), ReadBytes(folder_ / "files.mean"));
}

TEST_F(ImagesTest, MeanRefusesTwoShapes) {
  WriteDb("LMDB", folder_ / "db",
          {{"a", MakeDatum(1, 1, 2, "ab", 0).SerializeAsString()},
           {"b", MakeDatum(1, 2, 1, "ab", 0).SerializeAsString()}});
  EXPECT_THAT(Catch([&] { WriteMean(folder_ / "db", folder_ / "mean"); }),
              Refuses(ErrorCode::kData, "record 'b' is 1x2x1, but record 'a' is 1x1x2; a mean"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "mean"));
}

}  // namespace
}  // namespace trainer
