#include "jpeg_planes_check.h"

#include <string>

#include "formats.h"
#include "jpeg_reader.h"
#include "ycc.h"

namespace trainer {
namespace {

// Rows of blocks and columns of vectors, and some beside them.
constexpr int kHeight = 37, kWidth = 83;

// All colours there are, brighter and darker ones than there are among them.
Image Noise() {
  Image image{3, kHeight, kWidth, {}};
  uint32_t noise = 1;
  for (int64_t i = 0; i < 3 * image.Plane(); ++i) {
    noise = noise * 1664525 + 1013904223;
    image.pixels.push_back(static_cast<uint8_t>(noise >> 24));
  }
  return image;
}

// All pixels, row by row, a row of blue, one of green and one of red.
class Collected final : public JpegRows {
 public:
  explicit Collected(YccConversion to_bgr)
      : pixels(size_t{3} * kHeight * kWidth), to_bgr_(to_bgr), at_(pixels.data()) {}
  void Put(uint8_t* row) noexcept override {
    for (int c = 0; c < 3; ++c) {
      for (int x = 0; x < kWidth; ++x) *at_++ = row[3 * x + c];
    }
  }
  void PutYcc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr) noexcept override {
    to_bgr_(y, cb, cr, kWidth, at_, at_ + kWidth, at_ + 2 * kWidth);
    at_ += 3 * kWidth;
  }
  std::vector<uint8_t> pixels;

 private:
  YccConversion to_bgr_;
  uint8_t* at_;
};

template <int across, int down>
bool Equal() {
  static const bool kEqual = ComparePlanes({across, down}, YccToBgr);
  return kEqual;
}

}  // namespace

bool ComparePlanes(const JpegSampling& sampling, YccConversion to_bgr) {
  const std::string file = EncodeJpeg(Noise(), 100, sampling);
  const JpegPart all{.area = {0, 0, kWidth, kHeight}};
  Collected rows(to_bgr), planes(to_bgr);
  JpegReader reader;
  return reader.Read(file, all, &rows, JpegWay::kRows) == nullptr &&
         reader.Read(file, all, &planes, JpegWay::kPlanes) == nullptr &&
         rows.pixels == planes.pixels;
}

bool PlanesEqualRows(const JpegSampling& sampling) {
  if (sampling.across == 1 && sampling.down == 1) return Equal<1, 1>();
  if (sampling.across == 2 && sampling.down == 1) return Equal<2, 1>();
  return sampling.across == 2 && sampling.down == 2 && Equal<2, 2>();
}

}  // namespace trainer
