#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "storage/test_data.h"
#include "support/golden.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

using testing::HasSubstr;

Image Decode(const std::string& bytes, ColorMode colors = ColorMode::kColor) {
  Image image;
  DecodeImage(bytes, colors, {"db"}, "record '7'", &image);
  return image;
}

Thrown Refusal(const std::string& bytes, ColorMode colors = ColorMode::kColor) {
  return Catch([&] { Decode(bytes, colors); });
}

// Returns the largest difference, or 999 if the shapes differ.
int Difference(const Image& image, const GoldenTensor& want) {
  if (want.dims != std::vector<int64_t>{image.channels, image.height, image.width}) return 999;
  int most = 0;
  for (size_t i = 0; i < want.values.size(); ++i) {
    most = std::max(most, std::abs(image.pixels[i] - static_cast<int>(want.values[i])));
  }
  return most;
}

TEST(DecodeTest, GoldenValuesOfOpenCv) {
  int compared = 0;
  for (const GoldenCase& golden : ReadGolden("images/images.txt")) {
    for (const auto& [mode, want] : golden.tensors) {
      const ColorMode colors = mode == "color"  ? ColorMode::kColor
                               : mode == "gray" ? ColorMode::kGray
                                                : ColorMode::kAsStored;
      EXPECT_LE(Difference(Decode(Picture(golden.name), colors), want), 1)
          << golden.name << " " << mode;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 78);
}

// The decoder splits rows into planes 16 pixels at a time, and the remainder one by one.
TEST(DecodeTest, RowsOfAnyWidthBecomePlanes) {
  for (int width = 1; width <= 67; ++width) {
    std::string file = "P6 " + std::to_string(width) + " 2 255\n";
    const size_t start = file.size(), row = static_cast<size_t>(width);
    for (size_t i = 0; i < 6 * row; ++i) file += static_cast<char>(i * 37 + i / 256);
    const Image image = Decode(file);
    ASSERT_EQ(image.pixels.size(), 6 * row);
    for (size_t at = 0; at < 2 * row; ++at) {
      for (size_t c = 0; c < 3; ++c) {  // blue first
        ASSERT_EQ(image.pixels[c * 2 * row + at],
                  static_cast<uint8_t>(file[start + 3 * at + 2 - c]))
            << width << " " << at << " " << c;
      }
    }
  }
}

TEST(DecodeTest, ReusesTheImage) {
  Image image;
  DecodeImage(Picture("rgb.png"), ColorMode::kColor, {}, "it", &image);
  const std::vector<uint8_t> first = image.pixels;
  DecodeImage(Picture("gray.png"), ColorMode::kAsStored, {}, "it", &image);
  EXPECT_EQ(image.pixels.size(), 77u);
  DecodeImage(Picture("rgb.png"), ColorMode::kColor, {}, "it", &image);
  EXPECT_EQ(image.pixels, first);
}

TEST(DecodeTest, RefusesWhatIsNoPicture) {
  EXPECT_EQ(Refusal("").text, "db: record '7' is empty");
  EXPECT_THAT(Refusal("hello"), Refuses(ErrorCode::kData, "db: record '7' is not an image: "));
  const std::pair<std::string, const char*> kForeign[] = {{"GIF89a....", "GIF"},
                                                          {"RIFF1234WEBPVP8 ", "WebP"},
                                                          {"BM123456", "BMP"},
                                                          {std::string("\0\0\0\x18"
                                                                       "ftypavif",
                                                                       12),
                                                           "HEIF or AVIF"}};
  for (const auto& [bytes, name] : kForeign) {
    EXPECT_THAT(Refusal(bytes), Refuses(ErrorCode::kData,
                                        "record '7' is a " + std::string(name) +
                                            " file, which is not supported; convert it to JPEG or "
                                            "PNG"));
  }
}

TEST(DecodeTest, Refuses16BitsAsStoredOnly) {
  for (const char* name : {"rgb16.png", "gray16.png"}) {
    EXPECT_THAT(Refusal(Picture(name), ColorMode::kAsStored),
                Refuses(ErrorCode::kData, "16 bits per channel; set force_color or force_gray"));
    EXPECT_EQ(Refusal(Picture(name)).code, 0);
  }
}

// The first pixel of rgb16.png is red 0x6586, green 0x42ed, blue 0x0513.
TEST(DecodeTest, Reads16BitsWhereFloatsAreTaken) {
  const auto floats = [](const char* name, ColorMode colors) {
    Image image;
    DecodeImage(Picture(name), colors, {"f"}, "it", &image, BitDepth::kFloats);
    EXPECT_TRUE(image.pixels.empty());
    EXPECT_EQ(image.floats.size(), static_cast<size_t>(image.channels * image.Plane()));
    return image.floats;
  };
  const float red = 0x6586 / 257.f, green = 0x42ed / 257.f, blue = 0x0513 / 257.f;
  for (const ColorMode colors : {ColorMode::kColor, ColorMode::kAsStored}) {
    const std::vector<float> color = floats("rgb16.png", colors);
    ASSERT_EQ(color.size(), 3 * 77u);
    EXPECT_FLOAT_EQ(color[0], blue);
    EXPECT_FLOAT_EQ(color[77], green);
    EXPECT_FLOAT_EQ(color[2 * 77], red);
  }
  EXPECT_FLOAT_EQ(floats("rgb16.png", ColorMode::kGray)[0],
                  0.114f * blue + 0.587f * green + 0.299f * red);
  const std::vector<float> gray = floats("gray16.png", ColorMode::kColor);
  EXPECT_FLOAT_EQ(gray[0], red) << "gray16.png is the red of rgb16.png";
  EXPECT_FLOAT_EQ(gray[77], red);
}

TEST(DecodeTest, FilesOf8BitsAreBytesWhereFloatsAreTakenToo) {
  Image image;
  DecodeImage(Picture("rgb16.png"), ColorMode::kColor, {"f"}, "it", &image, BitDepth::kFloats);
  DecodeImage(Picture("rgb.png"), ColorMode::kColor, {"f"}, "it", &image, BitDepth::kFloats);
  EXPECT_TRUE(image.floats.empty());
  EXPECT_FALSE(image.pixels.empty());
}

TEST(DecodeTest, RefusesCmykWithoutAdobesMarker) {
  std::string bytes = Picture("cmyk.jpg");
  bytes.replace(bytes.find("Adobe"), 5, "Xdobe");
  EXPECT_THAT(Refusal(bytes), Refuses(ErrorCode::kData, "CMYK JPEG file without Adobe's marker"));
}

// --- Damage ---

// Returns the names of all golden images.
std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const GoldenCase& golden : ReadGolden("images/images.txt")) names.push_back(golden.name);
  return names;
}

TEST(DecodeTest, RefusesPicturesCutShortAnywhere) {
  for (const std::string& name : Names()) {
    const std::string whole = Picture(name);
    for (size_t length = 0; length < whole.size(); ++length) {
      const Thrown thrown = Refusal(whole.substr(0, length));
      ASSERT_EQ(thrown.code, 65) << name << " cut to " << length;
    }
    EXPECT_EQ(Refusal(whole + "more").code, 0) << name;
  }
}

TEST(DecodeTest, InvertedBytesGiveAPictureOrARefusal) {
  int refused = 0, total = 0;
  for (const std::string& name : Names()) {
    const bool png = name.ends_with(".png");
    const std::string whole = Picture(name);
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(~bytes[at]);
      const Thrown thrown = Refusal(bytes, ColorMode::kAsStored);
      ASSERT_TRUE(thrown.code == 0 || thrown.code == 65) << name << " " << at << thrown.text;
      if (!png) continue;
      refused += thrown.code == 65;
      ++total;
    }
  }
  EXPECT_EQ(refused, total);  // the checksums of PNG detect all
}

// --- Decompression bombs ---

void PutBig32(std::string* bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; ++i) (*bytes)[at + i] = static_cast<char>(value >> (24 - 8 * i));
}

uint32_t Crc32(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

std::string PngClaiming(uint32_t width, uint32_t height) {
  std::string bytes = Picture("gray.png");
  PutBig32(&bytes, 16, width);
  PutBig32(&bytes, 20, height);
  PutBig32(&bytes, 29, Crc32(bytes.substr(12, 17)));
  return bytes;
}

std::string JpegClaiming(uint16_t width, uint16_t height) {
  std::string bytes = Picture("rgb.jpg");
  const size_t frame = bytes.find("\xff\xc0");
  const uint16_t sizes[] = {height, width};
  for (size_t i = 0; i < 4; ++i) {
    bytes[frame + 5 + i] = static_cast<char>(sizes[i / 2] >> (i % 2 == 0 ? 8 : 0));
  }
  return bytes;
}

TEST(DecodeTest, RefusesClaimsBeyondTheLimit) {
  EXPECT_THAT(
      Refusal(JpegClaiming(65535, 65535)),
      Refuses(ErrorCode::kData, "65535x65535 pixels; at most 134217728 are allowed: scale it"));
  EXPECT_THAT(Refusal(PngClaiming(1, 0x7fffffff)),
              Refuses(ErrorCode::kData, "1x2147483647 pixels; at most 134217728"));
  EXPECT_THAT(Refusal("P5 99999999 99999999 255\nabc"),
              Refuses(ErrorCode::kData, "claims to have 99999999x99999999"));
}

TEST(DecodeTest, RefusesClaimsThatTheBytesCannotHold) {
  EXPECT_THAT(Refusal(JpegClaiming(11000, 11000)),
              Refuses(ErrorCode::kData, "bytes are too few for 11000x11000 pixels"));
  EXPECT_THAT(Refusal(PngClaiming(11000, 11000)),
              Refuses(ErrorCode::kData, "bytes are too few for 11000x11000 pixels"));
  EXPECT_THAT(Refusal("P6 11 7 255\nabc"),
              Refuses(ErrorCode::kData, "3 bytes, but 11x7 pixels need"));
}

TEST(DecodeTest, RefusesAThousandScans) {
  std::string bytes = Picture("progressive.jpg");
  const size_t scan = bytes.rfind("\xff\xda");
  const std::string last = bytes.substr(scan, bytes.size() - scan - 2);
  for (int i = 0; i < 1000; ++i) bytes.insert(scan, last);
  EXPECT_THAT(Refusal(bytes), Refuses(ErrorCode::kData, "scans for 11x7 pixels"));
}

TEST(DecodeTest, RefusesNoPixelsAndBadNetpbmHeaders) {
  EXPECT_THAT(Refusal("P5 0 3 255\n"), Refuses(ErrorCode::kData, "0x3 pixels; there must"));
  EXPECT_THAT(Refusal("P5 1 3 65535\n"), Refuses(ErrorCode::kData, "maximum value is 65535"));
  EXPECT_THAT(Refusal("P5 1 x"), Refuses(ErrorCode::kData, "is a damaged PGM or PPM file"));
  EXPECT_THAT(Refusal("P5 # no end"), Refuses(ErrorCode::kData, "is a damaged PGM or PPM file"));
}

// --- Resizing ---

Image SourceOf(const GoldenCase& golden) {
  const GoldenTensor& source = golden.Tensor("source");
  Image image;
  image.channels = 3;
  image.height = static_cast<int>(source.dims[1]);
  image.width = static_cast<int>(source.dims[2]);
  image.pixels.assign(source.values.begin(), source.values.end());
  return image;
}

TEST(ResizeTest, GoldenValuesOfOpenCvInTheOtherModes) {
  const std::map<std::string, Interpolation> modes = {{"NEAREST", Interpolation::kNearest},
                                                      {"CUBIC", Interpolation::kCubic},
                                                      {"AREA", Interpolation::kArea}};
  for (const GoldenCase& golden : ReadGolden("images/resize_modes.txt")) {
    const Image from = SourceOf(golden);
    const GoldenTensor& want = golden.Tensor("result");
    Image to;
    std::string mode = golden.Text("mode");
    while (mode.ends_with('\n')) mode.pop_back();
    ResizeImage(from, {0, 0, from.width, from.height}, static_cast<int>(want.dims[1]),
                static_cast<int>(want.dims[2]), &to, modes.at(mode));
    EXPECT_LE(Difference(to, want), mode == "NEAREST" ? 0 : 1) << golden.name;
  }
}

TEST(ResizeTest, GoldenValuesOfOpenCv) {
  for (const GoldenCase& golden : ReadGolden("images/resize.txt")) {
    const Image from = SourceOf(golden);
    const std::vector<float>& box = golden.Tensor("box").values;
    const GoldenTensor& want = golden.Tensor("result");
    Image to;
    ResizeImage(from,
                {static_cast<int>(box[0]), static_cast<int>(box[1]), static_cast<int>(box[2]),
                 static_cast<int>(box[3])},
                static_cast<int>(want.dims[1]), static_cast<int>(want.dims[2]), &to);
    EXPECT_LE(Difference(to, want), 1) << golden.name;
  }
}

}  // namespace
}  // namespace trainer
