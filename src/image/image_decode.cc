#include <glog/logging.h>

#include <algorithm>

#include "codecs.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The name of a format that is known but not read, or null.
const char* ForeignFormat(std::string_view bytes) {
  const auto after = [&](size_t head) { return bytes.substr(std::min(bytes.size(), head)); };
  if (bytes.starts_with("GIF8")) return "GIF";
  if (bytes.starts_with("RIFF") && after(8).starts_with("WEBP")) return "WebP";
  if (bytes.starts_with("BM")) return "BMP";
  if (bytes.starts_with("II*") || bytes.starts_with(std::string_view("MM\0*", 4))) return "TIFF";
  if (after(4).starts_with("ftyp")) return "HEIF or AVIF";
  if (bytes.starts_with("\x89HDF")) return "HDF5";
  return nullptr;
}

bool Decode(std::string_view bytes, ColorMode colors, BitDepth depth, const CropChooser* choose,
            Image* image, DecodedRegion* held) {
  image->floats.clear();
  if (bytes.empty()) throw ImageError("is empty");
  if (bytes.starts_with("\xff\xd8")) {
    DecodeJpeg(bytes, colors, choose, image, held);
    return false;
  }
  const bool png = bytes.starts_with("\x89PNG\r\n\x1a\n");
  if (png || bytes.starts_with("P5") || bytes.starts_with("P6")) {
    const bool lost = png && DecodePng(bytes, colors, depth, image);
    if (!png) DecodeNetpbm(bytes, colors, image);
    *held = {0, 0, 1, image->height, image->width};
    return lost;
  }
  if (const char* name = ForeignFormat(bytes)) {
    throw ImageError(
        Join("is a ", name, " file, which is not supported; convert it to JPEG or PNG"));
  }
  throw ImageError(
      "is not an image: it does not start like a JPEG, PNG, binary PGM or binary PPM file");
}

}  // namespace

int ScaleDenominator(const CropRequest& need) {
  for (int scale_denom = 8; scale_denom > 1 && need.height > 0; scale_denom /= 2) {
    if (need.box.height >= int64_t{need.height} * scale_denom &&
        need.box.width >= int64_t{need.width} * scale_denom) {
      return scale_denom;
    }
  }
  return 1;
}

void DecodeImage(std::string_view bytes, ColorMode colors, const SourceRef& place,
                 const std::string& what, Image* image, BitDepth depth, const CropChooser* choose,
                 DecodedRegion* held) try {
  DecodedRegion whole;
  if (!Decode(bytes, colors, depth, choose, image, held == nullptr ? &whole : held)) return;
  LOG_FIRST_N(WARNING, 1) << EscapeControl(Join(
      place.ToString(), ": ", what,
      " is a PNG file with 16 bits per channel; only the upper 8 bits are used, for this and all "
      "later files of this kind. Data and ImageData layers use all 16 bits if the first image "
      "has 16 bits, and if they do not resize images or change colors or parts at random"));
} catch (const ImageError& bad) {
  throw Error(ErrorCode::kData, place, Join(what, " ", bad.what()));
}

}  // namespace trainer
