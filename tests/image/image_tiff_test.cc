// Tests TIFF images written by hand from TIFF 6.0 or, if compressed or tiled, by libtiff.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/test_data.h"
#include "trainer/image/image.h"

#ifdef TRAINER_TIFF
#include <tiffio.h>
#endif

namespace trainer {
namespace {

using testing::ElementsAre;

// Describes an uncompressed image in one strip, or with a strip for each channel.
struct TiffImage {
  int width = 2, height = 1;
  std::vector<uint16_t> numbers;  // in the file's order
  int bits = 8, samples = 1;
  int photometric = 1;  // 0: 0 is white, 1: 0 is black, 2: RGB, 3: palette
  int orientation = 1, planar = 1, format = 1;
  bool big_endian = false;
  std::vector<uint16_t> palette = {};
  bool second_page = false;
};

class TiffBytes {
 public:
  explicit TiffBytes(const TiffImage& image) : image_(image) {
    bytes_ = image.big_endian ? "MM" : "II";
    Put(42, 2);
    Put(0, 4);  // offset of the directory, set below
    std::vector<uint32_t> offsets, counts;
    const size_t strips = image.planar == 2 ? static_cast<size_t>(image.samples) : 1;
    const size_t numbers = image.numbers.size() / strips;
    for (size_t strip = 0; strip < strips; ++strip) {
      offsets.push_back(static_cast<uint32_t>(bytes_.size()));
      for (size_t i = 0; i < numbers; ++i) {
        Put(image.numbers[strip * numbers + i], image.bits == 16 ? 2 : 1);
      }
      counts.push_back(static_cast<uint32_t>(bytes_.size()) - offsets.back());
    }
    const auto all = [&](int value) {
      return std::vector<uint32_t>(static_cast<size_t>(image.samples),
                                   static_cast<uint32_t>(value));
    };
    Add(256, 4, {static_cast<uint32_t>(image.width)});
    Add(257, 4, {static_cast<uint32_t>(image.height)});
    Add(258, 3, all(image.bits));
    Add(259, 3, {1});
    Add(262, 3, {static_cast<uint32_t>(image.photometric)});
    Add(273, 4, offsets);
    Add(274, 3, {static_cast<uint32_t>(image.orientation)});
    Add(277, 3, {static_cast<uint32_t>(image.samples)});
    Add(278, 4, {static_cast<uint32_t>(image.height)});
    Add(279, 4, counts);
    Add(284, 3, {static_cast<uint32_t>(image.planar)});
    if (!image.palette.empty()) Add(320, 3, {image.palette.begin(), image.palette.end()});
    if (image.samples == 4) Add(338, 3, {2});  // alpha is not multiplied into the colours
    Add(339, 3, all(image.format));
    const size_t directory = bytes_.size();
    Put(static_cast<uint32_t>(entries_.size() / 12), 2);
    bytes_ += entries_;
    Put(image.second_page ? static_cast<uint32_t>(directory) : 0, 4);
    const std::string place = Number(static_cast<uint32_t>(directory), 4);
    bytes_.replace(4, 4, place);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string Number(uint32_t value, int size) const {
    std::string text;
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (image_.big_endian ? size - 1 - i : i);
      text += static_cast<char>(value >> shift & 0xff);
    }
    return text;
  }
  void Put(uint32_t value, int size) { bytes_ += Number(value, size); }

  // Adds an entry of the directory; longer values are stored before the directory.
  void Add(uint32_t tag, int type, const std::vector<uint32_t>& values) {
    std::string content;
    for (const uint32_t value : values) content += Number(value, type == 3 ? 2 : 4);
    entries_ += Number(tag, 2) + Number(static_cast<uint32_t>(type), 2) +
                Number(static_cast<uint32_t>(values.size()), 4);
    if (content.size() > 4) {
      entries_ += Number(static_cast<uint32_t>(bytes_.size()), 4);
      bytes_ += content;
    } else {
      entries_ += content + std::string(4 - content.size(), '\0');
    }
  }

  const TiffImage& image_;
  std::string bytes_, entries_;
};

std::string Tiff(const TiffImage& image) { return TiffBytes(image).bytes(); }

Image DecodeTiffImage(const std::string& bytes, ColorMode colors = ColorMode::kAsStored,
                      BitDepth depth = BitDepth::kFloats) {
  Image image;
  DecodeImage(bytes, colors, {"db"}, "record '7'", &image, depth);
  return image;
}

std::vector<int> Pixels(const std::string& bytes, ColorMode colors = ColorMode::kAsStored,
                        BitDepth depth = BitDepth::kFloats) {
  const Image image = DecodeTiffImage(bytes, colors, depth);
  return {image.pixels.begin(), image.pixels.end()};
}

// Returns the 16-bit values. The decoded values range from 0 to 255.
std::vector<float> Numbers16(const std::string& bytes, ColorMode colors = ColorMode::kAsStored) {
  const Image image = DecodeTiffImage(bytes, colors);
  EXPECT_TRUE(image.pixels.empty());
  std::vector<float> numbers;
  for (const float value : image.floats) numbers.push_back(std::round(value * 257));
  return numbers;
}

Thrown TiffRefusal(const std::string& bytes, ColorMode colors = ColorMode::kAsStored,
                   BitDepth depth = BitDepth::kFloats) {
  return Catch([&] { DecodeTiffImage(bytes, colors, depth); });
}

#ifndef TRAINER_TIFF

TEST(TiffTest, IsRefusedWithoutLibtiff) {
  EXPECT_THAT(TiffRefusal(Tiff({.numbers = {1, 2}})),
              Refuses(ErrorCode::kData,
                      "db: record '7' is a TIFF file, but this program was built without libtiff; "
                      "install libtiff-dev and build it again, or convert the file to PNG"));
}

#else

TEST(TiffTest, HandValuesOf8Bits) {
  for (const bool big : {false, true}) {
    EXPECT_THAT(Pixels(Tiff({.numbers = {1, 250}, .big_endian = big})), ElementsAre(1, 250));
    const std::string rgb =
        Tiff({.numbers = {1, 2, 3, 11, 12, 13}, .samples = 3, .photometric = 2, .big_endian = big});
    EXPECT_THAT(Pixels(rgb), ElementsAre(3, 13, 2, 12, 1, 11)) << "blue first";
    // 0.299 * 1 + 0.587 * 2 + 0.114 * 3 is 1.8; the second pixel is 11.8.
    EXPECT_THAT(Pixels(rgb, ColorMode::kGray), ElementsAre(2, 12));
  }
  EXPECT_THAT(Pixels(Tiff({.numbers = {1, 250}}), ColorMode::kColor),
              ElementsAre(1, 250, 1, 250, 1, 250));
  EXPECT_THAT(Pixels(Tiff({.numbers = {1, 250}, .photometric = 0})), ElementsAre(254, 5));
}

TEST(TiffTest, HandValuesOf16Bits) {
  for (const bool big : {false, true}) {
    const std::string gray = Tiff({.numbers = {258, 65535}, .bits = 16, .big_endian = big});
    EXPECT_THAT(DecodeTiffImage(gray).floats, ElementsAre(258 / 257.f, 255));
    EXPECT_THAT(Numbers16(gray), ElementsAre(258, 65535));
    EXPECT_THAT(Numbers16(gray, ColorMode::kColor),
                ElementsAre(258, 65535, 258, 65535, 258, 65535));
    EXPECT_THAT(Pixels(gray, ColorMode::kGray, BitDepth::kBytes), ElementsAre(1, 255));
    EXPECT_THAT(TiffRefusal(gray, ColorMode::kAsStored, BitDepth::kBytes),
                Refuses(ErrorCode::kData, "has 16 bits per channel; set force_color"));
    const std::string rgb = Tiff({.numbers = {1000, 2000, 3000, 11, 12, 13},
                                  .bits = 16,
                                  .samples = 3,
                                  .photometric = 2,
                                  .big_endian = big});
    EXPECT_THAT(Numbers16(rgb), ElementsAre(3000, 13, 2000, 12, 1000, 11));
    EXPECT_EQ(Numbers16(rgb, ColorMode::kGray)[0], 299 + 1174 + 342);
  }
  EXPECT_THAT(Numbers16(Tiff({.numbers = {258, 65535}, .bits = 16, .photometric = 0})),
              ElementsAre(65535 - 258, 0));
}

TEST(TiffTest, ChannelsMayBeInPlanesOfTheirOwn) {
  EXPECT_THAT(Numbers16(Tiff({.numbers = {1000, 11, 2000, 12, 3000, 13},
                              .bits = 16,
                              .samples = 3,
                              .photometric = 2,
                              .planar = 2})),
              ElementsAre(3000, 13, 2000, 12, 1000, 11));
}

TEST(TiffTest, AlphaIsDroppedAndNotBlended) {
  const std::string rgba =
      Tiff({.numbers = {100, 101, 102, 0, 200, 201, 202, 9}, .samples = 4, .photometric = 2});
  EXPECT_THAT(Pixels(rgba, ColorMode::kColor), ElementsAre(102, 202, 101, 201, 100, 200));
  EXPECT_THAT(Pixels(rgba), ElementsAre(102, 202, 101, 201, 100, 200, 0, 9));
  const std::string wide = Tiff({.numbers = {1000, 2000, 3000, 0, 11, 12, 13, 65535},
                                 .bits = 16,
                                 .samples = 4,
                                 .photometric = 2});
  EXPECT_THAT(Numbers16(wide, ColorMode::kColor), ElementsAre(3000, 13, 2000, 12, 1000, 11));
  EXPECT_THAT(Numbers16(wide), ElementsAre(3000, 13, 2000, 12, 1000, 11, 0, 65535));
}

TEST(TiffTest, PalettesAndFewBitsBecome8Bits) {
  std::vector<uint16_t> palette(3 * 256);
  palette[5] = 10 * 257;            // red of colour 5
  palette[256 + 5] = 20 * 257;      // green
  palette[2 * 256 + 5] = 30 * 257;  // blue
  palette[2 * 256 + 6] = 40 * 257;
  const std::string colors = Tiff({.numbers = {5, 6}, .photometric = 3, .palette = palette});
  EXPECT_THAT(Pixels(colors), ElementsAre(30, 40, 20, 0, 10, 0));
  EXPECT_THAT(Pixels(Tiff({.numbers = {0x40}, .bits = 1})), ElementsAre(0, 255));
}

TEST(TiffTest, ImagesAreTurnedUprightUnlessAsStored) {
  TiffImage image{.width = 3, .height = 2, .numbers = {1, 2, 3, 4, 5, 6}, .orientation = 3};
  EXPECT_THAT(Pixels(Tiff(image), ColorMode::kGray), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(Pixels(Tiff(image)), ElementsAre(1, 2, 3, 4, 5, 6));
  image.orientation = 6;  // the first row is shown at the right
  EXPECT_EQ(DecodeTiffImage(Tiff(image), ColorMode::kGray).height, 3);
  EXPECT_THAT(Pixels(Tiff(image), ColorMode::kGray), ElementsAre(4, 1, 5, 2, 6, 3));
  image.bits = 16;
  EXPECT_THAT(Numbers16(Tiff(image), ColorMode::kGray), ElementsAre(4, 1, 5, 2, 6, 3));
}

TEST(TiffTest, TheFirstOfSeveralPagesIsRead) {
  EXPECT_THAT(Pixels(Tiff({.numbers = {1, 2}, .second_page = true})), ElementsAre(1, 2));
}

TEST(TiffTest, RefusesWhatItCannotRead) {
  EXPECT_THAT(TiffRefusal(Tiff({.numbers = {1, 2, 3, 4, 5, 6, 7, 8}, .bits = 32, .format = 3})),
              Refuses(ErrorCode::kData, "record '7' is a TIFF file with 32-bit floating-point"));
  EXPECT_THAT(
      TiffRefusal(Tiff({.numbers = {1, 2, 3, 4, 5, 6, 7, 8}, .bits = 32})),
      Refuses(ErrorCode::kData, "is a TIFF file with 32-bit integer numbers; only unsigned"));
  const std::string five = Tiff({.width = 1, .numbers = {1, 2, 3, 4, 5}, .samples = 5});
  EXPECT_THAT(TiffRefusal(five), Refuses(ErrorCode::kData, "is a TIFF file with 5 channels; set"));
  EXPECT_THAT(Pixels(five, ColorMode::kGray), ElementsAre(1));
  EXPECT_THAT(
      TiffRefusal(
          Tiff({.width = 1, .numbers = {1, 2, 3, 4}, .bits = 16, .samples = 4, .photometric = 5})),
      Refuses(ErrorCode::kData, "is a TIFF file of a kind that is not supported"));
  EXPECT_THAT(TiffRefusal(Tiff({.width = 70000, .height = 70000, .numbers = {1}})),
              Refuses(ErrorCode::kData, "claims to have 70000x70000 pixels; at most"));
}

// A file of a few hundred bytes that claims long rows must not make the program allocate them.
TEST(TiffTest, RefusesRowsOfMoreBytesThanAreAllocatedAtOnce) {
  const std::string claims = Tiff({.width = 20'000'000, .numbers = {1}, .samples = 30});
  EXPECT_THAT(TiffRefusal(claims, ColorMode::kGray),
              Refuses(ErrorCode::kData, "is a damaged TIFF file"));
}

TEST(TiffTest, FilesCutShortAnywhereAreRefused) {
  const std::string whole = Tiff({.numbers = {258, 65535}, .bits = 16});
  constexpr size_t kNextPage =
      4;  // libtiff does not need the last 4 bytes, the offset of a next page
  for (size_t length = 0; length < whole.size() - kNextPage; ++length) {
    ASSERT_EQ(TiffRefusal(whole.substr(0, length)).code, 65) << length;
  }
  EXPECT_EQ(TiffRefusal(whole + "more").code, 0);
}

TEST(TiffTest, InvertedBytesGiveAnImageOrARefusal) {
  const std::string whole =
      Tiff({.numbers = {1, 2, 3, 11, 12, 13}, .samples = 3, .photometric = 2});
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    const int code = TiffRefusal(bytes, ColorMode::kColor).code;
    ASSERT_TRUE(code == 0 || code == 65) << at;
  }
}

// Returns the value of channel c at pixel (x, y) of the image below.
uint16_t SampleOfTiff(int x, int y, int c) { return static_cast<uint16_t>(300 * y + 7 * x + c); }

// Writes an RGB image of 37 x 21 pixels with 16 bits with libtiff; `tile` 0 means strips of 5 rows.
std::string WrittenByLibtiff(const std::string& path, int compression, uint32_t tile) {
  constexpr int kWidth = 37, kHeight = 21;
  TIFF* const file = TIFFOpen(path.c_str(), "w");
  TIFFSetField(file, TIFFTAG_IMAGEWIDTH, kWidth);
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, kHeight);
  TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 16);
  TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 3);
  TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(file, TIFFTAG_COMPRESSION, compression);
  const auto fill = [](int left, int top, int width, int height) {
    std::vector<uint16_t> numbers;
    for (int y = top; y < top + height; ++y) {
      for (int x = left; x < left + width; ++x) {
        for (int c = 0; c < 3; ++c) numbers.push_back(SampleOfTiff(x, y, c));
      }
    }
    return numbers;
  };
  if (tile == 0) {
    TIFFSetField(file, TIFFTAG_ROWSPERSTRIP, 5);
    for (int y = 0; y < kHeight; ++y) {
      TIFFWriteScanline(file, fill(0, y, kWidth, 1).data(), static_cast<uint32_t>(y), 0);
    }
  } else {
    TIFFSetField(file, TIFFTAG_TILEWIDTH, tile);
    TIFFSetField(file, TIFFTAG_TILELENGTH, tile);
    const int side = static_cast<int>(tile);
    for (int y = 0; y < kHeight; y += side) {
      for (int x = 0; x < kWidth; x += side) {
        TIFFWriteTile(file, fill(x, y, side, side).data(), static_cast<uint32_t>(x),
                      static_cast<uint32_t>(y), 0, 0);
      }
    }
  }
  TIFFClose(file);
  return ReadBytes(path);
}

TEST(TiffTest, ReadsCompressedStripsAndTiles) {
  const TempFolder folder;
  for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
    for (const uint32_t tile : {0u, 16u}) {
      const Image image =
          DecodeTiffImage(WrittenByLibtiff(folder / "a.tif", compression, tile), ColorMode::kColor);
      ASSERT_EQ(image.floats.size(), 3u * 37 * 21);
      for (int c = 0; c < 3; ++c) {
        for (int y = 0; y < 21; ++y) {
          for (int x = 0; x < 37; ++x) {
            ASSERT_EQ(image.floats[static_cast<size_t>(c * image.Plane() + y * 37 + x)],
                      static_cast<float>(SampleOfTiff(x, y, 2 - c)) / 257)
                << compression << " " << tile << " " << x << " " << y;
          }
        }
      }
    }
  }
}

#endif

}  // namespace
}  // namespace trainer
