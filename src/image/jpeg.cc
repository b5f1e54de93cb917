#include <memory>
#include <utility>

#include "formats.h"
#include "jpeg_markers.h"
#include "jpeg_reader.h"
#include "trainer/base/text.h"
#include "ycc.h"

namespace trainer {
namespace {

constexpr int64_t kMaxScans = 100;  // progressive pictures have about ten

// Refuses what would take memory or time on the header's word alone, and what has no end: rows
// below a part are not decoded, so nobody else may see that they are missing.
void CheckClaims(const JpegMarkers& jpeg, size_t bytes) {
  // A block of 8x8 takes a bit at least, and sampling may spread it over four times the area.
  constexpr size_t kPixelsPerByte = 8 * 64 * 8;
  if (jpeg.components == 0) throw BadImage("is a damaged JPEG file: it has no frame header");
  CheckSize(jpeg.height, jpeg.width);
  const auto pixels = static_cast<size_t>(jpeg.height) * static_cast<size_t>(jpeg.width);
  if (jpeg.huffman && pixels / kPixelsPerByte > bytes) {
    throw BadImage(Join("is a JPEG file that is cut short: ", bytes, " bytes cannot hold ",
                        jpeg.width, "x", jpeg.height, " pixels"));
  }
  if (jpeg.scans > kMaxScans || static_cast<int64_t>(pixels) > 16 * kMaxPixels / (jpeg.scans + 1)) {
    throw BadImage(Join("is a JPEG file of ", jpeg.scans, " scans for ", jpeg.width, "x",
                        jpeg.height, " pixels, more than any image needs; save it again"));
  }
  if (!jpeg.ended) throw BadImage("is a damaged JPEG file: it is cut short, its end is missing");
}

// Adobe's CMYK is stored inverted: a channel of 255 is no ink.
void CmykToBgr(uint8_t* pixels, int width) {
  const uint8_t* in = pixels;
  for (uint8_t* out = pixels; out != pixels + 3 * width; in += 4, out += 3) {
    const int black = in[3];
    const auto mix = [black](int ink) {
      return static_cast<uint8_t>(black - ((255 - ink) * black >> 8));
    };
    const uint8_t blue = mix(in[2]), green = mix(in[1]), red = mix(in[0]);
    out[0] = blue;
    out[1] = green;
    out[2] = red;
  }
}

// Turns a picture upright that was taken with Exif orientation `n`.
void TurnUpright(int n, Image* image) {
  if (n == 1) return;
  const Image from = *image;
  const bool swap = n >= 5, flip_x = n == 2 || n == 3 || n == 7 || n == 8;
  const bool flip_y = n == 3 || n == 4 || n == 6 || n == 7;
  if (swap) std::swap(image->height, image->width);
  uint8_t* out = image->pixels.data();
  for (int c = 0; c < from.channels; ++c) {
    const uint8_t* plane = from.pixels.data() + c * from.Plane();
    for (int y = 0; y < image->height; ++y) {
      for (int x = 0; x < image->width; ++x) {
        const int column = swap ? y : x, row = swap ? x : y;
        const int64_t in_row = flip_y ? from.height - 1 - row : row;
        *out++ = plane[in_row * from.width + (flip_x ? from.width - 1 - column : column)];
      }
    }
  }
}

int DividedUp(int n, int by) { return (n + by - 1) / by; }

// The part of the picture at 1/shrink of its size that `need` touches.
JpegPart PartOf(const PartNeed& need) {
  JpegPart part;
  part.shrink = ShrinkOf(need);
  const Box& box = need.box;
  Box& area = part.area;
  area.top = box.top / part.shrink;
  area.left = box.left / part.shrink;
  area.height = DividedUp(box.top + box.height, part.shrink) - area.top;
  area.width = DividedUp(box.left + box.width, part.shrink) - area.left;
  return part;
}

// Puts rows into the planes of an image.
class Planes final : public JpegRows {
 public:
  Planes(int channels, Colors colors, Image* image)
      : channels_(channels), colors_(colors), image_(image) {}
  void Put(uint8_t* row) noexcept override {
    if (channels_ == 4) CmykToBgr(row, image_->width);
    PutRow(row, channels_ == 4 ? 3 : channels_, colors_, y_++, image_);
  }
  void PutYcc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr) noexcept override {
    const int64_t plane = image_->Plane();
    uint8_t* const out = image_->pixels.data() + int64_t{y_++} * image_->width;
    YccToBgr(y, cb, cr, image_->width, out, out + plane, out + 2 * plane);
  }

 private:
  int channels_;
  Colors colors_;
  Image* image_;
  int y_ = 0;
};

}  // namespace

void DecodeJpeg(std::string_view bytes, Colors colors, const ChoosePart* choose, Image* image,
                HeldPart* held) {
  const JpegMarkers jpeg = ReadJpegMarkers(bytes);
  CheckClaims(jpeg, bytes.size());
  const bool cmyk = jpeg.components == 4;
  if (cmyk && !jpeg.adobe) {
    throw BadImage(
        "is a CMYK JPEG file without Adobe's marker, so that its colours are unknown; convert it "
        "to RGB");
  }
  const bool gray = colors == Colors::kGray || (colors == Colors::kAsStored && jpeg.components < 3);
  const int channels = cmyk ? 4 : gray ? 1 : 3;
  const int orientation = colors == Colors::kAsStored ? 1 : jpeg.orientation;
  PartNeed need{{0, 0, jpeg.width, jpeg.height}};
  if (choose != nullptr && orientation == 1) need = (*choose)(jpeg.height, jpeg.width);
  JpegPart part = PartOf(need);
  part.space = cmyk ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
  SetForm(channels == 4 ? 3 : channels, part.area.height, part.area.width, colors, image);
  Planes planes(channels, colors, image);
  thread_local std::unique_ptr<JpegReader> reader;
  if (reader == nullptr) reader = std::make_unique<JpegReader>();
  if (const char* const why = reader->Read(bytes, part, &planes)) {
    throw BadImage(Join("is a damaged JPEG file: ", why));
  }
  TurnUpright(orientation, image);
  *held = {part.area.top, part.area.left, part.shrink, jpeg.height, jpeg.width};
  if (orientation >= 5) std::swap(held->picture_height, held->picture_width);
}

}  // namespace trainer
