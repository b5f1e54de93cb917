// Compares partly decoded JPEG pictures with the complete decoding, and tests resizing of regions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "storage/test_data.h"
#include "support/golden.h"
#include "trainer/base/text/text.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

// Returns waves with noise: neighbouring pixels differ in lightness and in colour.
Image Waves(int height, int width, int channels = 3) {
  Image image{channels, height, width, {}};
  uint32_t noise = 1;
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        noise = noise * 1664525 + 1013904223;
        const double wave = 100 * std::sin(0.3 * x + c) * std::cos(0.2 * y - c);
        image.pixels.push_back(static_cast<uint8_t>(128 + wave + (noise >> 28)));
      }
    }
  }
  return image;
}

struct Part {
  Image image;
  DecodedRegion held;
};

Part DecodeBox(const std::string& bytes, const Rect& box, int height = 0, int width = 0,
               ColorMode colors = ColorMode::kColor) {
  Part part;
  const CropChooser choose = [&](int, int) { return CropRequest{box, height, width}; };
  DecodeImage(bytes, colors, {"db"}, "record '7'", &part.image, BitDepth::kBytes, &choose,
              &part.held);
  return part;
}

Image Whole(const std::string& bytes, ColorMode colors = ColorMode::kColor) {
  Image image;
  DecodeImage(bytes, colors, {"db"}, "record '7'", &image);
  return image;
}

// Counts the pixels of `part` that differ from `whole`. Both are decoded at the same size.
int Differences(const Part& part, const Image& whole) {
  int differences = 0;
  for (int c = 0; c < whole.channels; ++c) {
    for (int y = 0; y < part.image.height; ++y) {
      for (int x = 0; x < part.image.width; ++x) {
        const size_t at = static_cast<size_t>(c * part.image.Plane() + y * part.image.width + x);
        const size_t in_whole = static_cast<size_t>(
            c * whole.Plane() + (y + part.held.top) * whole.width + x + part.held.left);
        differences += part.image.pixels[at] != whole.pixels[in_whole];
      }
    }
  }
  return differences;
}

// Returns pictures with colours at full, half (horizontal) and half size (both directions).
std::vector<std::string> Sampled() {
  std::vector<std::string> files;
  for (const char* name : {"full", "across", "half", "gray", "restarts"}) {
    files.push_back(Picture(Join("waves_", name, ".jpg")));
  }
  return files;
}

TEST(PartTest, EveryPlaceEqualsTheWholePicture) {
  for (const std::string& file : Sampled()) {
    const Image whole = Whole(file);
    int differences = 0, parts = 0;
    for (int top = 0; top < whole.height; top += 3) {
      for (int left = 0; left < whole.width; left += 5) {
        for (const int size : {1, 2, 9, 17, 40}) {
          const Rect box{left, top, std::min(size, whole.width - left),
                         std::min(size, whole.height - top)};
          const Part part = DecodeBox(file, box);
          ASSERT_EQ(part.image.height, box.height);
          ASSERT_EQ(part.image.width, box.width);
          ASSERT_EQ(part.held.top, top);
          ASSERT_EQ(part.held.left, left);
          differences += Differences(part, whole);
          ++parts;
        }
      }
    }
    EXPECT_EQ(differences, 0) << parts << " parts of " << whole.width << "x" << whole.height;
  }
}

TEST(PartTest, EveryPlaceEqualsTheWholePictureAtAHalfAQuarterAndAnEighth) {
  for (const std::string& file : Sampled()) {
    const Image full = Whole(file);
    for (const int scale_denom : {2, 4, 8}) {
      // Decodes the whole picture at this size.
      const Part all = DecodeBox(file, {0, 0, full.width, full.height}, full.height / scale_denom,
                                 full.width / scale_denom);
      ASSERT_EQ(all.held.scale_denom, scale_denom);
      ASSERT_EQ(all.image.height, (full.height + scale_denom - 1) / scale_denom);
      int differences = 0;
      for (int top = 0; top + 8 < full.height; top += 5) {
        for (int left = 0; left + 8 < full.width; left += 7) {
          for (const int size : {8, 24, 40}) {
            const Rect box{left, top, std::min(size, full.width - left),
                           std::min(size, full.height - top)};
            const Part part =
                DecodeBox(file, box, box.height / scale_denom, box.width / scale_denom);
            ASSERT_EQ(part.held.scale_denom, scale_denom);
            ASSERT_LE(part.held.top * scale_denom, top);
            ASSERT_GE((part.held.top + part.image.height) * scale_denom, top + box.height);
            ASSERT_LE(part.held.left * scale_denom, left);
            ASSERT_GE((part.held.left + part.image.width) * scale_denom, left + box.width);
            differences += Differences(part, all.image);
          }
        }
      }
      EXPECT_EQ(differences, 0) << scale_denom;
    }
  }
}

TEST(PartTest, AShrunkPixelIsNearTheMeanOfItsBlock) {
  const std::string file = EncodeImage(Waves(64, 96), "jpg");
  const Image full = Whole(file);
  for (const int scale_denom : {2, 4, 8}) {
    const Part all = DecodeBox(file, {0, 0, 96, 64}, 64 / scale_denom, 96 / scale_denom);
    double error = 0;
    for (int y = 0; y < 64 / scale_denom; ++y) {
      for (int x = 0; x < 96 / scale_denom; ++x) {
        double mean = 0;
        for (int k = 0; k < scale_denom * scale_denom; ++k) {
          const int at =
              (y * scale_denom + k / scale_denom) * 96 + x * scale_denom + k % scale_denom;
          mean += full.pixels[static_cast<size_t>(at)];
        }
        const int got = all.image.pixels[static_cast<size_t>(y * all.image.width + x)];
        error += std::fabs(got - mean / (scale_denom * scale_denom));
      }
    }
    EXPECT_LT(error * scale_denom * scale_denom / (64 * 96), 6) << scale_denom;
  }
}

TEST(PartTest, TheScaleIsAFunctionOfTheSizesAlone) {
  const auto scale_denom = [](int height, int width, int to_height, int to_width) {
    return ScaleDenominator({{0, 0, width, height}, to_height, to_width});
  };
  EXPECT_EQ(scale_denom(448, 448, 224, 224), 2);
  EXPECT_EQ(scale_denom(447, 448, 224, 224), 1);
  EXPECT_EQ(scale_denom(448, 447, 224, 224), 1);
  EXPECT_EQ(scale_denom(895, 2000, 224, 224), 2);
  EXPECT_EQ(scale_denom(896, 2000, 224, 224), 4);
  EXPECT_EQ(scale_denom(60000, 60000, 224, 224), 8);
  EXPECT_EQ(scale_denom(60000, 60000, 0, 0), 1);
  EXPECT_EQ(scale_denom(100, 100, 200, 200), 1);
}

TEST(PartTest, OtherPicturesAreDecodedWhole) {
  for (const char* name : {"rgb.png", "rgb.ppm", "progressive.jpg", "turned6.jpg"}) {
    const std::string bytes = Picture(name);
    const Image whole = Whole(bytes);
    const Part part = DecodeBox(bytes, {3, 2, 4, 4});
    EXPECT_EQ(part.held.picture_height, whole.height) << name;
    EXPECT_EQ(part.held.picture_width, whole.width) << name;
    EXPECT_EQ(Differences(part, whole), 0) << name;
  }
  EXPECT_EQ(DecodeBox(Picture("turned6.jpg"), {3, 2, 4, 4}, 1, 1).held.scale_denom, 1);
}

TEST(PartTest, EveryKindOfColorsIsCutAlike) {
  for (const char* name : {"cmyk.jpg", "gray.jpg", "full.jpg", "rgb.jpg"}) {
    for (const ColorMode colors : {ColorMode::kColor, ColorMode::kGray, ColorMode::kAsStored}) {
      const std::string bytes = Picture(name);
      const Part part = DecodeBox(bytes, {2, 3, 5, 3}, 0, 0, colors);
      EXPECT_EQ(Differences(part, Whole(bytes, colors)), 0) << name;
    }
  }
}

TEST(SmoothTest, GoldenValuesOfPillow) {
  for (const GoldenCase& golden : ReadGolden("images/smooth.txt")) {
    const GoldenTensor& source = golden.Tensor("source");
    const GoldenTensor& want = golden.Tensor("result");
    const std::vector<float>& box = golden.Tensor("box").values;
    Image from{3, static_cast<int>(source.dims[1]), static_cast<int>(source.dims[2]), {}}, to;
    from.pixels.assign(source.values.begin(), source.values.end());
    ResizeImage(from,
                {static_cast<int>(box[0]), static_cast<int>(box[1]), static_cast<int>(box[2]),
                 static_cast<int>(box[3])},
                static_cast<int>(want.dims[1]), static_cast<int>(want.dims[2]), &to,
                Interpolation::kSmooth);
    ASSERT_EQ(to.pixels.size(), want.values.size());
    for (size_t i = 0; i < want.values.size(); ++i) {
      ASSERT_NEAR(to.pixels[i], want.values[i], 1) << golden.name << " " << i;
    }
  }
}

// A region between pixels gives the same result as in a picture of twice the size, in which four
// equal pixels replace each pixel.
TEST(SmoothTest, BordersMayLieBetweenPixels) {
  const Image small = Waves(12, 14);
  Image large{3, 24, 28, {}};
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 24; ++y) {
      for (int x = 0; x < 28; ++x) {
        large.pixels.push_back(small.pixels[static_cast<size_t>((c * 12 + y / 2) * 14 + x / 2)]);
      }
    }
  }
  Image of_small, of_large;
  ResizeImage(large, {3, 5, 21, 17}, 4, 5, &of_large, Interpolation::kArea);
  ResizeRegion(small, {1.5, 2.5, 10.5, 8.5}, 4, 5, &of_small, Interpolation::kArea);
  for (size_t i = 0; i < of_large.pixels.size(); ++i) {
    EXPECT_NEAR(of_small.pixels[i], of_large.pixels[i], 1) << i;
  }
  for (const Interpolation how : {Interpolation::kNearest, Interpolation::kLinear,
                                  Interpolation::kCubic, Interpolation::kSmooth}) {
    ResizeRegion(small, {0.5, 11.25, 13.5, 0.75}, 7, 9, &of_small, how);  // stays in the image
    EXPECT_EQ(of_small.pixels.size(), 7u * 9 * 3);
  }
}

// --- Damage ---

TEST(PartTest, APictureCutShortIsRefusedWhateverThePartIs) {
  const std::string whole = EncodeImage(Waves(64, 64), "jpg");
  for (size_t length = 0; length < whole.size(); length += 7) {
    const Thrown thrown = Catch([&] { DecodeBox(whole.substr(0, length), {0, 0, 8, 8}); });
    ASSERT_EQ(thrown.code, 65) << length;
  }
  EXPECT_THAT(Catch([&] {
                DecodeBox(whole.substr(0, whole.size() - 2), {0, 0, 8, 8});
              }),
              Refuses(ErrorCode::kData, "record '7' is a truncated JPEG file: its end is missing"));
}

// Restart markers are numbered cyclically; a wrong number is a warning when it is read.
TEST(PartTest, DamageIsSeenDownToTheLastRowOfThePart) {
  std::string bytes = Picture("waves_restarts.jpg");
  const size_t third = bytes.find("\xff\xd2");
  ASSERT_NE(third, std::string::npos);
  bytes[third + 1] = '\xd6';
  const int height = Whole(Picture("waves_restarts.jpg")).height;
  const auto refusal = [&](int top, int rows) {
    return Catch([&] { DecodeBox(bytes, {0, top, 8, rows}); }).code;
  };
  EXPECT_EQ(refusal(0, height), 65);
  EXPECT_EQ(refusal(height - 8, 8), 65);  // the rows above are decoded too
  EXPECT_EQ(refusal(0, 8), 0);
}

TEST(PartTest, InvertedBytesGiveAPartOrARefusal) {
  const std::string whole = Picture("waves_half.jpg");
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    const Thrown thrown = Catch([&] {
      Part part;
      const CropChooser choose = [](int height, int width) {
        return CropRequest{{width / 3, height / 3, (width + 2) / 3, (height + 2) / 3}, 3, 3};
      };
      DecodeImage(bytes, ColorMode::kColor, {"db"}, "it", &part.image, BitDepth::kBytes, &choose,
                  &part.held);
    });
    ASSERT_TRUE(thrown.code == 0 || thrown.code == 65) << at << thrown.text;
  }
}

TEST(PartTest, ADecoderThatMetDamageDecodesTheNextPicture) {
  const std::string good = Picture("waves_half.jpg");
  const Image whole = Whole(good);
  EXPECT_EQ(Catch([&] { Whole(good.substr(0, 700) + "\xff\xd9"); }).code, 65);
  EXPECT_EQ(Whole(good).pixels, whole.pixels);
}

}  // namespace
}  // namespace trainer
