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

enum class Colors {
  kAsStored,  // as many channels as the file has: 1, 3 or 4; the camera's orientation is ignored
  kColor,     // 3
  kGray,      // 1
};

// What becomes of a PNG file of 16 bits per channel.
enum class BitDepth {
  kBytes,   // its upper 8 bits; the first such file is warned of
  kFloats,  // all 16, as Image::floats: a value v is v / 257, so that 65535 is 255
};

// A file that claims more is refused before memory is taken for it.
inline constexpr int64_t kMaxPixels = int64_t{1} << 27;

// Decodes JPEG, PNG or binary Netpbm (PGM, PPM), told apart by their first bytes. The result is
// OpenCV's: palettes and few-bit greys become 8 bits; 16 bits are read as `depth` says, but refused
// as stored where they would lose their lower half; alpha is dropped, not blended; grey is 0.299 R
// + 0.587 G + 0.114 B (of a JPEG: its Y); unless as stored, a JPEG is rotated upright as its Exif
// data says. The memory of `image` is reused.
//
// Throws kData with `place`; the message starts with `what`, which names the picture: no picture or
// one of another format, cut short, damaged (any warning of a library counts), more than
// kMaxPixels, more scans than any picture needs, CMYK without Adobe's marker, which says how to
// read it.
void DecodeImage(std::string_view bytes, Colors colors, const SourceRef& place,
                 const std::string& what, Image* image, BitDepth depth = BitDepth::kBytes);

// A part of a picture, in pixels. It must be inside.
struct Box {
  int left = 0, top = 0, width = 0, height = 0;
};

// What is wanted of a picture: a part, and the size that it is going to be resized to; 0 where its
// pixels are taken as they are.
struct PartNeed {
  Box box;
  int height = 0, width = 0;
};
// Asked once the size of a picture is known.
using ChoosePart = std::function<PartNeed(int height, int width)>;

// 8, 4 or 2, the greatest by which a part may be shrunk when it is decoded without getting smaller
// than it is needed; or 1.
int ShrinkOf(const PartNeed& need);

// What an image holds of a picture: the pixels from (top, left) on of the picture that is decoded
// at 1/shrink of its size. What was asked for is inside.
struct HeldPart {
  int top = 0, left = 0, shrink = 1;
  int picture_height = 0, picture_width = 0;  // at full size
};

// As DecodeImage, but only as much of a JPEG as the part needs, where that saves time. Its pixels
// are those of the whole picture bit for bit; a part that is going to be resized is decoded at
// 1/ShrinkOf(need) of its size, where each pixel is a mean over the block that it stands for.
// Pictures of several scans, those that have to be turned upright, and other formats are decoded
// whole. A file without its end is refused; other damage is seen in the rows down to the part's
// last one alone.
void DecodePart(std::string_view bytes, Colors colors, const ChoosePart& choose,
                const SourceRef& place, const std::string& what, Image* image, HeldPart* held,
                BitDepth depth = BitDepth::kBytes);

// The pixels of a picture that somebody else holds.
struct ImageView {
  int channels = 0, height = 0, width = 0;
  const uint8_t* pixels = nullptr;  // (C, H, W)

  ImageView(int c, int h, int w, const uint8_t* p) : channels(c), height(h), width(w), pixels(p) {}
  ImageView(const Image& image)  // NOLINT: an image is one
      : ImageView(image.channels, image.height, image.width, image.pixels.data()) {}
  int64_t Plane() const { return int64_t{height} * width; }
};

// How resized pixels are made: by OpenCV's names, and, kSmooth, by linear weights that reach as far
// as a new pixel is wide, as Pillow's BILINEAR does: what is shrunk does not flicker.
enum class Interpolation { kNearest, kLinear, kCubic, kArea, kSmooth };

// Resizes a part of `from` to height x width between the centres of pixels, nothing from outside
// the box. Within one grey level of OpenCV. `to` is another object.
void ResizeImage(const ImageView& from, const Box& box, int height, int width, Image* to,
                 Interpolation how = Interpolation::kLinear);

// The same of a part whose borders need not lie between pixels: those of a part that was shrunk.
struct Region {
  double left = 0, top = 0, width = 0, height = 0;
};
void ResizeRegion(const ImageView& from, const Region& region, int height, int width, Image* to,
                  Interpolation how);

// The bytes of a file of `type` "jpg" or "png". `image` has 1 or 3 channels. `quality` of a JPEG: 1
// to 100, 95 as OpenCV writes. Throws kUsage for another type, kResource when a library fails.
std::string EncodeImage(const Image& image, const std::string& type, int quality = 95);

}  // namespace trainer
