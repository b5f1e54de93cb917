#include <memory>
#include <utility>

#include "codecs.h"
#include "jpeg_header.h"
#include "jpeg_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kMaxScans = 100;  // progressive pictures have about ten

// Refuses headers that claim too much memory or time, and files without an end: rows below a part
// are not decoded, so nothing else would detect that they are missing.
void CheckClaims(const JpegHeader& jpeg, size_t bytes) {
  // A block of 8x8 takes a bit at least, and sampling may spread it over four times the area.
  constexpr size_t kPixelsPerByte = 8 * 64 * 8;
  if (jpeg.components == 0) throw ImageError("is a damaged JPEG file: its frame header is missing");
  CheckSize(jpeg.height, jpeg.width);
  const auto pixels = static_cast<size_t>(jpeg.height) * static_cast<size_t>(jpeg.width);
  if (jpeg.huffman && pixels / kPixelsPerByte > bytes) {
    throw ImageError(Join("is a truncated JPEG file: ", bytes, " bytes are too few for ",
                          jpeg.width, "x", jpeg.height, " pixels"));
  }
  if (jpeg.scans > kMaxScans || static_cast<int64_t>(pixels) > 16 * kMaxPixels / (jpeg.scans + 1)) {
    throw ImageError(Join("is a JPEG file of ", jpeg.scans, " scans for ", jpeg.width, "x",
                          jpeg.height, " pixels, more than any image needs; save it again"));
  }
  if (!jpeg.ended) throw ImageError("is a truncated JPEG file: its end is missing");
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

// The part of the picture at 1/scale_denom of its size that `need` touches.
JpegPart PartOf(const CropRequest& need) {
  JpegPart part;
  part.scale_denom = ScaleDenominator(need);
  const Rect& box = need.box;
  Rect& area = part.area;
  area.top = box.top / part.scale_denom;
  area.left = box.left / part.scale_denom;
  area.height = DividedUp(box.top + box.height, part.scale_denom) - area.top;
  area.width = DividedUp(box.left + box.width, part.scale_denom) - area.left;
  return part;
}

}  // namespace

void DecodeJpeg(std::string_view bytes, ColorMode colors, const CropChooser* choose, Image* image,
                DecodedRegion* held) {
  const JpegHeader jpeg = ReadJpegMarkers(bytes);
  CheckClaims(jpeg, bytes.size());
  const bool cmyk = jpeg.components == 4;
  if (cmyk && !jpeg.adobe) {
    throw ImageError(
        "is a CMYK JPEG file without Adobe's marker, so its colors are unknown; convert it to RGB");
  }
  const bool gray =
      colors == ColorMode::kGray || (colors == ColorMode::kAsStored && jpeg.components < 3);
  const int channels = cmyk ? 4 : gray ? 1 : 3;
  const int orientation = colors == ColorMode::kAsStored ? 1 : jpeg.orientation;
  CropRequest need{{0, 0, jpeg.width, jpeg.height}};
  if (choose != nullptr && orientation == 1) need = (*choose)(jpeg.height, jpeg.width);
  JpegPart part = PartOf(need);
  part.space = cmyk ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
  AllocateImage(channels == 4 ? 3 : channels, part.area.height, part.area.width, colors, image);
  thread_local std::unique_ptr<JpegReader> reader;
  if (reader == nullptr) reader = std::make_unique<JpegReader>();
  if (const char* const why = reader->Read(bytes, part, colors, image)) {
    throw ImageError(Join("is a damaged JPEG file: ", why));
  }
  TurnUpright(orientation, image);
  *held = {part.area.top, part.area.left, part.scale_denom, jpeg.height, jpeg.width};
  if (orientation >= 5) std::swap(held->picture_height, held->picture_width);
}

}  // namespace trainer
