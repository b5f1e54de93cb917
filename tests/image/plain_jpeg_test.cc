// Which JPEG files every decoder knows, by their markers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_data.h"
#include "support/golden.h"
#include "trainer/base/text.h"
#include "trainer/image/jpeg_unit.h"

namespace trainer {
namespace {

using testing::Optional;

bool operator==(const PictureForm& a, const PictureForm& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

// What DecodeImage makes of the file.
PictureForm Decoded(const std::string& bytes, Colors colors) {
  Image image;
  DecodeImage(bytes, colors, {"f"}, "it", &image);
  return {image.channels, image.height, image.width};
}

std::optional<PictureForm> FormOf(const std::string& bytes, Colors colors = Colors::kColor) {
  return FormOfPlainJpeg(bytes, colors);
}

TEST(PlainJpegTest, TheFormIsThatOfTheDecodedPicture) {
  for (const char* name : {"waves_full", "waves_across", "waves_half", "waves_restarts", "full"}) {
    const std::string bytes = Picture(Join(name, ".jpg"));
    for (const Colors colors : {Colors::kColor, Colors::kGray, Colors::kAsStored}) {
      const auto form = FormOf(bytes, colors);
      ASSERT_TRUE(form) << name;
      EXPECT_TRUE(*form == Decoded(bytes, colors)) << name;
    }
  }
  const std::string gray = Picture("waves_gray.jpg");
  EXPECT_TRUE(FormOf(gray, Colors::kGray).value() == Decoded(gray, Colors::kGray));
  EXPECT_TRUE(FormOf(gray, Colors::kAsStored).value() == Decoded(gray, Colors::kAsStored));
  EXPECT_EQ(FormOf(gray, Colors::kAsStored)->channels, 1);
}

TEST(PlainJpegTest, OtherPicturesAreNotPlain) {
  EXPECT_FALSE(FormOf(""));
  EXPECT_FALSE(FormOf("\xff\xd8\xff"));
  EXPECT_FALSE(FormOf(Picture("rgb.png")));
  EXPECT_FALSE(FormOf(Picture("progressive.jpg")));
  EXPECT_FALSE(FormOf(Picture("cmyk.jpg")));
  EXPECT_FALSE(FormOf(Picture("waves_gray.jpg"), Colors::kColor)) << "grey that is to be color";
}

TEST(PlainJpegTest, APictureThatHasToBeTurnedIsPlainOnlyAsItIsStored) {
  EXPECT_TRUE(FormOf(Picture("turned1.jpg")));
  for (int n = 2; n <= 8; ++n) {
    EXPECT_FALSE(FormOf(Picture(Join("turned", n, ".jpg"))));
    EXPECT_TRUE(FormOf(Picture(Join("turned", n, ".jpg")), Colors::kAsStored));
  }
}

TEST(PlainJpegTest, AFileWithoutItsEndIsNotPlain) {
  const std::string bytes = Picture("waves_half.jpg");
  for (const size_t cut : {size_t{1}, size_t{2}, bytes.size() / 2, bytes.size() - 10}) {
    EXPECT_FALSE(FormOf(bytes.substr(0, bytes.size() - cut))) << cut;
  }
}

// Bytes of a frame header and of Adobe's marker, changed one at a time.
TEST(PlainJpegTest, SamplingPrecisionAndColorSpaceAreLookedAt) {
  const std::string bytes = Picture("waves_half.jpg");
  const size_t frame = bytes.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  const auto with = [&](size_t at, char value) {
    std::string changed = bytes;
    changed[frame + at] = value;
    return changed;
  };
  EXPECT_TRUE(FormOf(with(11, 0x22)));
  EXPECT_FALSE(FormOf(with(11, 0x41))) << "4:1:1, which JPEG engines do not know";
  EXPECT_FALSE(FormOf(with(14, 0x21))) << "chroma of unlike sizes";
  EXPECT_FALSE(FormOf(with(4, 12))) << "12 bits";
  EXPECT_FALSE(FormOf(with(1, '\xc1'))) << "extended";

  std::string rgb = bytes;  // without JFIF's marker the components' numbers count
  rgb.replace(rgb.find("JFIF"), 4, "ABCD");
  EXPECT_TRUE(FormOf(rgb));
  for (int c = 0; c < 3; ++c) rgb[frame + 10 + 3 * static_cast<size_t>(c)] = "RGB"[c];
  EXPECT_FALSE(FormOf(rgb)) << "red, green and blue are stored";
  const std::string adobe(
      "\xff\xee\0\x0e"
      "Adobe\0\x64\0\0\0\0\0",
      16);
  EXPECT_FALSE(FormOf(rgb.substr(0, 2) + adobe + rgb.substr(2)));
  EXPECT_TRUE(FormOf(rgb.substr(0, 2) + adobe.substr(0, 15) + "\1" + rgb.substr(2)));
}

}  // namespace
}  // namespace trainer
