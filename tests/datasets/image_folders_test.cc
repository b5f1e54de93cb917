// Tests sets of pictures that are sorted into folders.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "trainer/datasets/from_images.h"
#include "trainer/image/image.h"
#include "trainer/input/class_folders.h"
#include "trainer/input/image_list.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImageFoldersTest : public testing::Test {
 protected:
  ImageFoldersTest() {
    Add("dog/b.png", "rgb.png");
    Add("dog/a.JPG", "rgb.jpg");
    Add("dog/notes.txt", "");
    Add("cat/deep/x.png", "rgb.png");
    Add("cat/y.jpeg", "rgb.jpg");
    Add(".hidden/z.png", "rgb.png");
    Add("cat/.z.png", "rgb.png");
  }
  void Add(const std::string& name, const std::string& picture) {
    const std::filesystem::path path = folder_ / ("in/" + name);
    std::filesystem::create_directories(path.parent_path());
    WriteBytes(path, picture.empty() ? "text" : Picture(picture));
  }
  ImagesOptions Options(const std::string& name = "out/train_lmdb") {
    std::filesystem::create_directories(folder_ / "out");
    ImagesOptions options;
    options.root = folder_ / "in";
    options.output.path = folder_ / name;
    return options;
  }
  Records Read(const std::string& name) {
    Records records;
    RecordScan scan(folder_ / name);
    StoredRecord record;
    while (scan.Next(&record)) records.emplace_back(record.key, record.value);
    return records;
  }
  static std::vector<std::string> Keys(const Records& records) {
    std::vector<std::string> keys;
    for (const auto& record : records) keys.push_back(record.first);
    return keys;
  }
  static caffe::Datum Parsed(const std::string& value) {
    caffe::Datum datum;
    EXPECT_TRUE(datum.ParseFromString(value));
    return datum;
  }

  TempFolder folder_;
};

TEST_F(ImageFoldersTest, AClassWhoseNameHasALineBreakIsRefused) {
  Add("two\nlines/x.png", "rgb.png");
  EXPECT_THAT(
      Catch([&] { WriteImages(Options()); }),
      Refuses(ErrorCode::kData, "the name of the class 'two\\x0alines' contains a line break"));
}

TEST_F(ImageFoldersTest, WritesRecordsLabelsAndCounts) {
  const ImagesResult result = WriteImages(Options());
  EXPECT_EQ(result.records, 4);
  EXPECT_EQ(result.labels, folder_ / "out/labels.txt");
  EXPECT_EQ(ReadBytes(result.labels), "cat\ndog\n");
  ASSERT_EQ(result.classes.size(), 2u);
  EXPECT_EQ(result.classes[1].name, "dog");
  EXPECT_EQ(result.classes[1].records, 2);
  const Records records = Read("out/train_lmdb");
  EXPECT_THAT(Keys(records), ElementsAre("00000000_cat/deep/x.png", "00000001_cat/y.jpeg",
                                         "00000002_dog/a.JPG", "00000003_dog/b.png"));
  EXPECT_EQ(Parsed(records[3].second).label(), 1);
}

TEST_F(ImageFoldersTest, OtherLabelsAreNotOverwrittenAndNothingIsMade) {
  const ImagesOptions options = Options();
  WriteBytes(folder_ / "out/labels.txt", "dog\ncat\n");
  EXPECT_THAT(Catch([&] { WriteImages(options); }),
              Refuses(ErrorCode::kCannotCreate, "lists different classes"));
  EXPECT_FALSE(std::filesystem::exists(options.output.path));
  WriteBytes(folder_ / "out/labels.txt", "cat\ndog\n");
  WriteImages(options);
}

TEST_F(ImageFoldersTest, ThreadsChangeNothing) {
  for (int i = 0; i < 40; ++i) Add("dog/more" + std::to_string(i) + ".png", "rgb.png");
  Add("dog/bad.png", "");
  ImagesOptions options = Options("out/one");
  options.shuffle = true;
  options.height = options.width = 9;
  options.validation = {.share = 0.25};
  WriteImages(options);
  options.output.path = folder_ / "out/five";
  options.threads = 5;
  EXPECT_EQ(WriteImages(options).skipped, 1);
  EXPECT_EQ(Read("out/one"), Read("out/five"));
  EXPECT_EQ(Read("out/one_val"), Read("out/five_val"));
}

TEST_F(ImageFoldersTest, ValidationTakesItsShareOfEachClassAndNoPictureTwice) {
  for (int i = 0; i < 18; ++i) {
    Add("cat/c" + std::to_string(i) + ".png", "rgb.png");
    Add("dog/d" + std::to_string(i) + ".png", "rgb.png");
  }
  ImagesOptions options = Options();
  options.validation = {.share = 0.1};
  const ImagesResult result = WriteImages(options);
  EXPECT_EQ(result.validation_path, folder_ / "out/val_lmdb");
  EXPECT_EQ(result.records, 36);
  EXPECT_EQ(result.validation_records, 4);
  for (const ImagesResult::Class& one : result.classes) EXPECT_EQ(one.validation_records, 2);
  std::vector<std::string> all = Keys(Read("out/train_lmdb"));
  for (const std::string& key : Keys(Read("out/val_lmdb"))) {
    EXPECT_THAT(all, testing::Not(testing::Contains(key)));
    all.push_back(key);
  }
  EXPECT_EQ(all.size(), 40u);
}

TEST(ValidationPathTest, IsNamedAfterTheSet) {
  EXPECT_EQ(ValidationPath("data/train_lmdb"), "data/val_lmdb");
  EXPECT_EQ(ValidationPath("photos.tar"), "photos_val.tar");
  EXPECT_EQ(ValidationPath("photos_lmdb"), "photos_lmdb_val");
}

// rgb.png is 11 wide and 7 high.
TEST_F(ImageFoldersTest, ShortKeepsProportionsUntilBothSidesAreLongEnough) {
  ImagesOptions options = Options();
  options.fit = ImageFit::kShort;
  options.height = options.width = 14;
  WriteImages(options);
  const caffe::Datum datum = Parsed(Read("out/train_lmdb")[0].second);
  EXPECT_EQ(datum.height(), 14);
  EXPECT_EQ(datum.width(), 22);
}

TEST_F(ImageFoldersTest, PadKeepsThePictureInTheMiddleOfABlackOne) {
  ImagesOptions options = Options();
  options.fit = ImageFit::kPad;
  options.height = options.width = 11;
  WriteImages(options);
  const caffe::Datum datum = Parsed(Read("out/train_lmdb")[0].second);
  ASSERT_EQ(datum.height(), 11);
  ASSERT_EQ(datum.width(), 11);
  Image want;
  DecodeImage(Picture("rgb.png"), ColorMode::kColor, {}, "it", &want);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 11; ++y) {
      for (int x = 0; x < 11; ++x) {
        const int inside =
            y >= 2 && y < 9 ? want.pixels[static_cast<size_t>((c * 7 + y - 2) * 11 + x)] : 0;
        ASSERT_EQ(static_cast<uint8_t>(datum.data()[static_cast<size_t>((c * 11 + y) * 11 + x)]),
                  inside);
      }
    }
  }
}

TEST_F(ImageFoldersTest, AFileOfTheRightSizeIsKeptAndOthersAreEncodedInTheQualityThatIsAskedFor) {
  ImagesOptions options = Options();
  options.encoded = true;
  options.fit = ImageFit::kShort;
  options.height = 7;
  options.width = 11;
  WriteImages(options);
  EXPECT_EQ(Parsed(Read("out/train_lmdb")[0].second).data(), Picture("rgb.png"));
  const auto bytes = [&](int quality) {
    options.output.path = folder_ / ("out/q" + std::to_string(quality));
    options.encode_type = "jpg";
    options.height = options.width = 64;
    options.quality = quality;
    WriteImages(options);
    return Read("out/q" + std::to_string(quality))[0].second.size();
  };
  EXPECT_LT(bytes(20), bytes(95));
}

TEST_F(ImageFoldersTest, TheMeanIsThatOfTheTrainingRecordsAndNeedsOneSize) {
  ImagesOptions options = Options();
  options.mean = folder_ / "out/mean";
  EXPECT_THAT(Catch([&] { WriteImages(options); }),
              Refuses(ErrorCode::kUsage, "--mean needs images of equal size"));
  options.height = options.width = 8;
  WriteImages(options);
  caffe::BlobProto blob;
  ASSERT_TRUE(blob.ParseFromString(ReadBytes(options.mean)));
  EXPECT_EQ(blob.height(), 8);
}

}  // namespace
}  // namespace trainer
