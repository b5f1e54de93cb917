#include <glog/logging.h>

#include "codecs.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

bool HasAt(std::string_view bytes, size_t at, std::string_view part) {
  return bytes.size() >= at + part.size() && bytes.substr(at, part.size()) == part;
}

// The name of a format that is known but not read, or null.
const char* ForeignFormat(std::string_view bytes) {
  if (HasAt(bytes, 0, "GIF8")) return "GIF";
  if (HasAt(bytes, 0, "RIFF") && HasAt(bytes, 8, "WEBP")) return "WebP";
  if (HasAt(bytes, 0, "BM")) return "BMP";
  if (HasAt(bytes, 0, "II*") || HasAt(bytes, 0, {"MM\0*", 4})) return "TIFF";
  if (HasAt(bytes, 4, "ftyp")) return "HEIF or AVIF";
  if (HasAt(bytes, 0, "\x89HDF")) return "HDF5";
  return nullptr;
}

// Returns whether bits were lost.
bool Decode(std::string_view bytes, ColorMode colors, BitDepth depth, const CropChooser* choose,
            Image* image, DecodedRegion* held) {
  image->floats.clear();
  if (bytes.empty()) throw ImageError("is empty");
  if (HasAt(bytes, 0, "\xff\xd8")) {
    DecodeJpeg(bytes, colors, choose, image, held);
    return false;
  }
  const bool png = HasAt(bytes, 0, "\x89PNG\r\n\x1a\n");
  if (png || HasAt(bytes, 0, "P5") || HasAt(bytes, 0, "P6")) {
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

void DecodeAt(std::string_view bytes, ColorMode colors, BitDepth depth, const CropChooser* choose,
              const SourceRef& place, const std::string& what, Image* image, DecodedRegion* held) {
  try {
    if (!Decode(bytes, colors, depth, choose, image, held)) return;
    LOG_FIRST_N(WARNING, 1) << EscapeControl(Join(
        place.ToString(), ": ", what,
        " is a PNG file with 16 bits per channel; only the upper 8 bits are used, for this and all "
        "later files of this kind. Data and ImageData layers use all 16 bits if the first image "
        "has 16 bits, and if they do not resize images or change colors or parts at random"));
  } catch (const ImageError& bad) {
    throw Error(ErrorCode::kData, place, Join(what, " ", bad.what()));
  }
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
                 const std::string& what, Image* image, BitDepth depth) {
  DecodedRegion whole;
  DecodeAt(bytes, colors, depth, nullptr, place, what, image, &whole);
}

void DecodeRegion(std::string_view bytes, ColorMode colors, const CropChooser& choose,
                  const SourceRef& place, const std::string& what, Image* image,
                  DecodedRegion* held, BitDepth depth) {
  DecodeAt(bytes, colors, depth, &choose, place, what, image, held);
}

}  // namespace trainer
