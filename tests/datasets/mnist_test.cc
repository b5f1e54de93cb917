#include "trainer/datasets/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "storage/test_data.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

using testing::ElementsAre;

std::string Big(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::string Gzip(const std::string& plain, const std::string& path) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, plain.data(), static_cast<unsigned>(plain.size()));
  gzclose(file);
  return ReadBytes(path);
}

class IdxTest : public testing::Test {
 protected:
  void Write(const std::string& images, const std::string& labels) {
    WriteBytes(images_, images);
    WriteBytes(labels_, labels);
  }
  // Returns the values of pixels and labels, one image after the other.
  std::vector<int> ReadAll() {
    const std::string database = folder_ / "db";
    std::filesystem::remove_all(database);
    WriteIdx(images_, labels_, database);
    const auto cursor = OpenCursor("LMDB", database);
    std::vector<int> all;
    DatumParser parser;
    do {
      const DatumView& datum = parser.Parse(database, cursor->Key(), cursor->Value());
      EXPECT_EQ(datum.ShapeText(), "1x1x3");
      for (const char pixel : datum.bytes) all.push_back(static_cast<uint8_t>(pixel));
      all.push_back(datum.label);
    } while (!cursor->Next());
    return all;
  }
  Thrown Refusal() {
    return Catch([&] { ReadAll(); });
  }

  TempFolder folder_;
  std::string images_ = folder_ / "images", labels_ = folder_ / "labels";
  // The two images are 1 x 3.
  std::string good_images_ = Big(0x803) + Big(2) + Big(1) + Big(3) + "\x01\x02\x03\x04\x05\xff";
  std::string good_labels_ = Big(0x801) + Big(2) + "\x07\x09";
};

TEST_F(IdxTest, ReadsPlainFiles) {
  Write(good_images_, good_labels_);
  EXPECT_THAT(ReadAll(), ElementsAre(1, 2, 3, 7, 4, 5, 255, 9));
}

TEST_F(IdxTest, ReadsGzippedFiles) {
  Gzip(good_images_, images_);
  Gzip(good_labels_, labels_);
  EXPECT_THAT(ReadAll(), ElementsAre(1, 2, 3, 7, 4, 5, 255, 9));
}

TEST_F(IdxTest, RefusesEveryTruncationOfEitherFile) {
  for (size_t length = 0; length < good_images_.size(); ++length) {
    Write(good_images_.substr(0, length), good_labels_);
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "the file is truncated: it ends")) << length;
  }
  for (size_t length = 0; length < good_labels_.size(); ++length) {
    Write(good_images_, good_labels_.substr(0, length));
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "the file is truncated: it ends")) << length;
  }
}

TEST_F(IdxTest, RefusesTruncatedAndDamagedGzip) {
  Write("", good_labels_);
  const std::string packed = Gzip(good_images_, images_);
  for (size_t length = 3; length < packed.size(); ++length) {
    WriteBytes(images_, packed.substr(0, length));
    EXPECT_EQ(Refusal().code, static_cast<int>(ErrorCode::kData)) << length;
  }
  std::string bad = packed;
  bad[bad.size() - 6] = static_cast<char>(~bad[bad.size() - 6]);  // a byte of the checksum
  WriteBytes(images_, bad);
  EXPECT_THAT(Refusal(),
              Refuses(ErrorCode::kData, "the gzip file is damaged: incorrect data check"));
}

TEST_F(IdxTest, RefusesOtherKindsOfFiles) {
  Write(good_labels_, good_images_);
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "swap the two files"));
  Write("PNG, say, of some length", good_labels_);
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "not an idx file of images"));
}

TEST_F(IdxTest, RefusesDifferentCounts) {
  Write(good_images_, Big(0x801) + Big(3) + "\x01\x02\x03");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "3 labels, but"));
}

TEST_F(IdxTest, RefusesNoImagesAndImpossibleSizes) {
  Write(Big(0x803) + Big(0) + Big(1) + Big(1), Big(0x801) + Big(0));
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "has no images"));
  for (const uint32_t side : {0u, 16385u, 0xffffffffu}) {
    Write(Big(0x803) + Big(1) + Big(side) + Big(1) + "x", Big(0x801) + Big(1) + "x");
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "each side must be 1 to 16384"));
  }
}

TEST_F(IdxTest, RefusesBytesAfterTheEnd) {
  Write(good_images_ + "x", good_labels_);
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "has data after the 2 entries"));
  Write(good_images_, good_labels_ + "x");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "has data after the 2 entries"));
}

TEST_F(IdxTest, RefusesAMissingFile) {
  Write(good_images_, good_labels_);
  EXPECT_EQ(Catch([&] { WriteIdx(images_, folder_ / "none", folder_ / "db"); }).code,
            static_cast<int>(ErrorCode::kNoInput));
}

}  // namespace
}  // namespace trainer
