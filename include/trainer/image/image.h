#pragma once
// Pictures: decoded from the bytes of a file, and resized.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/error/error.h"

namespace trainer {

// 1 channel is grey, 3 are blue, green, red, and a fourth is alpha: OpenCV's order, and so Caffe's.
struct Image {
  int channels = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels;  // (C, H, W)
  // The same from 0 to 255, in place of `pixels`: see BitDepth::kFloats.
  std::vector<float> floats = {};

  int64_t Plane() const { return int64_t{height} * width; }
};

enum class ColorMode {
  kAsStored,  // as many channels as the file has: 1, 3 or 4; the camera's orientation is ignored
  kColor,     // 3
  kGray,      // 1
};

// How an image with 16 bits per channel is decoded.
enum class BitDepth {
  kBytes,   // its upper 8 bits; the first such file is warned of
  kFloats,  // all 16, as Image::floats: a value v is v / 257, so that 65535 is 255
};

// A file that claims more is refused before memory is taken for it.
inline constexpr int64_t kMaxPixels = int64_t{1} << 27;

// A part of a picture, in pixels. It must be inside.
struct Rect {
  int left = 0, top = 0, width = 0, height = 0;
};

// The part of an image that is needed, and its size after resizing; 0: not resized.
struct CropRequest {
  Rect box;
  int height = 0, width = 0;
};
// Asked once the size of a picture is known.
using CropChooser = std::function<CropRequest(int height, int width)>;

// 8, 4, 2 or 1: the greatest by which decoding may shrink a part and keep the size that is needed.
int ScaleDenominator(const CropRequest& need);

// The part of an image that was decoded: the pixels from (top, left) on of the image at
// 1/scale_denom of its size. It contains the requested part.
struct DecodedRegion {
  int top = 0, left = 0, scale_denom = 1;
  int picture_height = 0, picture_width = 0;  // at full size
};

// Decodes JPEG, PNG, binary Netpbm (PGM, PPM), or, if libtiff was found, TIFF, recognised by the
// first bytes; of several pages the first. The result equals OpenCV's: palettes and few-bit greys
// become 8 bits; 16 bits are decoded as `depth` says, but refused as stored if they would lose
// their lower half; alpha is dropped, not blended; grey is 0.299 R + 0.587 G + 0.114 B (for a JPEG
// its Y); unless as stored, a JPEG is rotated upright by its Exif data. The memory of `image` is
// reused.
//
// With `choose` only the part of a JPEG that is needed is decoded, if that saves time; `held` says
// which. The pixels equal those of the whole image bit for bit. A part that will be resized is
// decoded at 1/ScaleDenominator(need) of its size, where each pixel is the mean of a block. Images
// with several scans or with a rotation, and other formats, are decoded whole. A file without its
// end is refused; other damage is detected only in the rows up to the part's last one.
//
// Throws kData with `place`; the message starts with `what`, which names the image: not an image or
// of another format, cut short, damaged (any warning of a library counts), more than kMaxPixels,
// more scans than any image needs, CMYK without Adobe's marker, which defines how to read it.
void DecodeImage(std::string_view bytes, ColorMode colors, const SourceRef& place,
                 const std::string& what, Image* image, BitDepth depth = BitDepth::kBytes,
                 const CropChooser* choose = nullptr, DecodedRegion* held = nullptr);

// Fills `image` from rows of interleaved bytes: 1 channel, or 3 or 4 that begin with blue, green,
// red. `colors` converts them as DecodeImage does. The memory of `image` is reused.
void FromInterleaved(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                     Image* image);

// The pixels of an image, without ownership.
struct ImageView {
  int channels = 0, height = 0, width = 0;
  const uint8_t* pixels = nullptr;  // (C, H, W)
  const float* floats = nullptr;    // instead of `pixels`: see Image

  ImageView(int c, int h, int w, const uint8_t* p) : channels(c), height(h), width(w), pixels(p) {}
  ImageView(const Image& image)  // NOLINT: an image is one
      : ImageView(image.channels, image.height, image.width, image.pixels.data()) {
    if (!image.floats.empty()) floats = image.floats.data();
  }
  int64_t Plane() const { return int64_t{height} * width; }
};

// How resized pixels are made: by OpenCV's names, and, kSmooth, by linear weights that reach as far
// as a new pixel is wide, as Pillow's BILINEAR does: what is shrunk does not flicker.
enum class Interpolation { kNearest, kLinear, kCubic, kArea, kSmooth };

// Resizes a part of `from` to height x width between the centres of pixels, nothing from outside
// the box. Within one grey level of OpenCV; floats are neither rounded nor clipped. `to` is another
// object.
void ResizeImage(const ImageView& from, const Rect& box, int height, int width, Image* to,
                 Interpolation how = Interpolation::kLinear);

// A rectangle in pixels. Its borders may be fractions: a JPEG decoded at a reduced scale maps the
// borders of the original rectangle to fractional pixels.
struct RectF {
  double left = 0, top = 0, width = 0, height = 0;
};
// Does the same as ResizeImage for a region with fractional borders.
void ResizeRegion(const ImageView& from, const RectF& region, int height, int width, Image* to,
                  Interpolation how);

// The bytes of a file of `type` "jpg" or "png". `image` has 1 or 3 channels; floats become 16 bits
// per channel. `quality` of a JPEG: 1 to 100, 95 as OpenCV writes. Throws kUsage for another type
// and for floats in a JPEG, kResource when a library fails.
std::string EncodeImage(const Image& image, const std::string& type, int quality = 95);

}  // namespace trainer
