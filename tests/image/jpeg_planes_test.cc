// Pictures made of libjpeg's planes equal those of its own rows, bit for bit.

#include "jpeg_planes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "data/test_data.h"
#include "jpeg_planes_check.h"
#include "jpeg_reader.h"
#include "trainer/base/text.h"
#include "ycc.h"

namespace trainer {
namespace {

constexpr JpegSampling kSamplings[] = {{1, 1}, {2, 1}, {2, 2}};

// Slopes, waves and noise, which differ by channel.
Image Noise(int height, int width) {
  Image image{3, height, width, {}};
  uint32_t noise = static_cast<uint32_t>(height * 1000 + width);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        noise = noise * 1664525 + 1013904223;
        image.pixels.push_back(static_cast<uint8_t>((c + 3) * x + (7 - c) * y + (noise >> 26)));
      }
    }
  }
  return image;
}

// What was read of a part: row by row, blue, green, red; and why it was not.
struct Pixels {
  std::vector<uint8_t> bytes;
  std::string why;
  bool planes = false;  // by PutYcc
};

class Collected final : public JpegRows {
 public:
  Collected(int width, Pixels* to) : width_(static_cast<size_t>(width)), to_(to) {}
  void Put(uint8_t* row) noexcept override {
    for (size_t c = 0; c < 3; ++c) {
      for (size_t x = 0; x < width_; ++x) to_->bytes.push_back(row[3 * x + c]);
    }
  }
  void PutYcc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr) noexcept override {
    to_->planes = true;
    const size_t at = to_->bytes.size();
    to_->bytes.resize(at + 3 * width_);
    uint8_t* const out = to_->bytes.data() + at;
    YccToBgr(y, cb, cr, static_cast<int>(width_), out, out + width_, out + 2 * width_);
  }

 private:
  size_t width_;
  Pixels* to_;
};

Pixels Read(const std::string& file, const Box& area, JpegWay way) {
  Pixels pixels;
  Collected rows(area.width, &pixels);
  JpegReader reader;
  const JpegPart part{.area = area};
  if (const char* const why = reader.Read(file, part, &rows, way)) pixels.why = why;
  return pixels;
}

// Whether both ways make the same of the area, or refuse it for the same reason.
testing::AssertionResult Alike(const std::string& file, const Box& area) {
  const Pixels rows = Read(file, area, JpegWay::kRows);
  const Pixels planes = Read(file, area, JpegWay::kPlanes);
  if (rows.why != planes.why) {
    return testing::AssertionFailure() << "'" << rows.why << "' and '" << planes.why << "'";
  }
  if (!rows.why.empty()) return testing::AssertionSuccess();
  const size_t pixels = static_cast<size_t>(area.height) * static_cast<size_t>(area.width);
  if (rows.bytes.size() != 3 * pixels || !planes.planes || rows.planes) {
    return testing::AssertionFailure() << rows.bytes.size() << " bytes by rows";
  }
  if (rows.bytes != planes.bytes) return testing::AssertionFailure() << "pixels differ";
  return testing::AssertionSuccess();
}

Box SizeOf(const std::string& file) {
  Image image;
  DecodeImage(file, Colors::kAsStored, {"f"}, "it", &image);
  return {0, 0, image.width, image.height};
}

TEST(JpegPlanesTest, PicturesOfAllSizesEqualLibjpegsRows) {
  for (const JpegSampling& sampling : kSamplings) {
    for (int height = 1; height <= 40; ++height) {
      for (int width = 5; width <= 75; width += height % 3 + 1) {
        const std::string file = EncodeJpeg(Noise(height, width), 90, sampling);
        ASSERT_TRUE(Alike(file, {0, 0, width, height}))
            << sampling.across << "x" << sampling.down << " " << height << "x" << width;
      }
    }
  }
}

TEST(JpegPlanesTest, PartsAtAnyPlaceEqualLibjpegsRows) {
  for (const JpegSampling& sampling : kSamplings) {
    const std::string file = EncodeJpeg(Noise(53, 71), 90, sampling);
    for (int top = 0; top < 53; top += 4) {
      for (int left = 0; left < 71; left += 5) {
        for (const int size : {1, 2, 17, 40}) {
          const Box area{left, top, std::min(size, 71 - left), std::min(size, 53 - top)};
          ASSERT_TRUE(Alike(file, area)) << top << " " << left << " " << size;
        }
      }
    }
  }
}

TEST(JpegPlanesTest, FilesOfOtherProgramsEqualLibjpegsRows) {
  for (const char* name : {"rgb", "full", "turned3", "turned6", "progressive", "waves_full",
                           "waves_across", "waves_half", "waves_restarts"}) {
    const std::string file = Picture(Join(name, ".jpg"));
    EXPECT_TRUE(Alike(file, SizeOf(file))) << name;
  }
}

// In a file of several scans that lacks some, what was not sent is guessed by smoothing.
TEST(JpegPlanesTest, APictureThatLacksScansEqualsLibjpegsRows) {
  const std::string whole = Picture("progressive.jpg");
  const Box area = SizeOf(whole);
  const auto next_scan = [&](size_t after) { return whole.find("\xff\xda", after + 2); };
  int scans = 1;
  for (size_t at = next_scan(next_scan(0)); at != std::string::npos; at = next_scan(at), ++scans) {
    EXPECT_TRUE(Alike(whole.substr(0, at) + "\xff\xd9", area)) << scans << " scans";
  }
  EXPECT_GT(scans, 3);
}

TEST(JpegPlanesTest, DamageHasTheSameConsequences) {
  for (const char* name : {"waves_half", "waves_restarts", "progressive", "rgb"}) {
    const std::string whole = Picture(Join(name, ".jpg"));
    const Box area = SizeOf(whole);
    const size_t frame =
        whole.find(whole.find("\xff\xc2") == std::string::npos ? "\xff\xc0" : "\xff\xc2");
    for (size_t at = frame + 19; at < whole.size(); at += 5) {  // sizes and sampling stay
      std::string bytes = whole;
      bytes[at] = static_cast<char>(~bytes[at]);
      ASSERT_TRUE(Alike(bytes, area)) << name << " " << at;
      ASSERT_TRUE(Alike(whole.substr(0, at) + "\xff\xd9", area)) << name << " cut at " << at;
    }
  }
}

// --- Who reads what ---

// Whether the fastest way is by planes.
bool ByPlanes(const std::string& file, const Box& area) {
  return Read(file, area, JpegWay::kBest).planes;
}

TEST(JpegPlanesTest, WholePicturesAndLargePartsAreReadByPlanes) {
  for (const JpegSampling& sampling : kSamplings) {
    const std::string file = EncodeJpeg(Noise(100, 100), 90, sampling);
    EXPECT_TRUE(ByPlanes(file, {0, 0, 100, 100}));
    EXPECT_TRUE(ByPlanes(file, {0, 0, 100, 10})) << "rows below are left out either way";
    EXPECT_TRUE(ByPlanes(file, {10, 0, 85, 100}));
    EXPECT_FALSE(ByPlanes(file, {10, 0, 84, 100}));
    EXPECT_FALSE(ByPlanes(file, {0, 16, 100, 84}));
  }
  const std::string scans = Picture("progressive.jpg");
  EXPECT_TRUE(ByPlanes(scans, {3, 3, 2, 2})) << "nothing of it can be left out";
}

TEST(JpegPlanesTest, OtherPicturesAreReadByRows) {
  const Image image = Noise(20, 20);
  for (const JpegSampling& sampling : {JpegSampling{1, 2}, {4, 1}, {4, 2}}) {
    EXPECT_FALSE(ByPlanes(EncodeJpeg(image, 90, sampling), {0, 0, 20, 20}))
        << sampling.across << "x" << sampling.down;
  }
  EXPECT_FALSE(ByPlanes(EncodeJpeg(Noise(20, 4), 90), {0, 0, 4, 20})) << "no smoothing";
  const std::string file = EncodeJpeg(image, 90);
  std::string rgb = file;
  rgb.replace(rgb.find("JFIF"), 4, "ABCD");
  const size_t frame = rgb.find("\xff\xc0"), scan = rgb.find("\xff\xda");
  for (size_t c = 0; c < 3; ++c) {
    rgb[frame + 10 + 3 * c] = rgb[scan + 5 + 2 * c] = "RGB"[c];
  }
  const Pixels stored = Read(rgb, {0, 0, 20, 20}, JpegWay::kBest);
  EXPECT_EQ(stored.why, "");
  EXPECT_FALSE(stored.planes) << "RGB is stored";
}

// Where the library that is linked makes something else of a picture, its rows are read.
TEST(JpegPlanesTest, TheLibraryIsComparedBeforeItsRowsAreReplaced) {
  const auto darker = [](const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int width,
                         uint8_t* blue, uint8_t* green, uint8_t* red) {
    YccToBgr(y, cb, cr, width, blue, green, red);
    green[width / 2] = static_cast<uint8_t>(green[width / 2] / 2);
  };
  for (const JpegSampling& sampling : kSamplings) {
    EXPECT_TRUE(ComparePlanes(sampling, YccToBgr));
    EXPECT_TRUE(PlanesEqualRows(sampling));
    EXPECT_FALSE(ComparePlanes(sampling, darker));
  }
  EXPECT_FALSE(PlanesEqualRows({}));
  EXPECT_FALSE(PlanesEqualRows({1, 2}));
}

}  // namespace
}  // namespace trainer
