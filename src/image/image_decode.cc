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
  if (after(4).starts_with("ftyp")) return "HEIF or AVIF";
  if (bytes.starts_with("\x89HDF")) return "HDF5";
  return nullptr;
}

bool IsTiff(std::string_view bytes) {
  return bytes.starts_with(std::string_view("II*\0", 4)) ||
         bytes.starts_with(std::string_view("MM\0*", 4)) ||
         bytes.starts_with(std::string_view("II+\0", 4)) ||
         bytes.starts_with(std::string_view("MM\0+", 4));
}

DecodeNotes Decode(std::string_view bytes, ColorMode colors, BitDepth depth,
                   const CropChooser* choose, Image* image, DecodedRegion* held) {
  image->floats.clear();
  if (bytes.empty()) throw ImageError("is empty");
  if (bytes.starts_with("\xff\xd8")) {
    DecodeJpeg(bytes, colors, choose, image, held);
    return {};
  }
  const bool png = bytes.starts_with("\x89PNG\r\n\x1a\n"), tiff = IsTiff(bytes);
  if (png || tiff || bytes.starts_with("P5") || bytes.starts_with("P6")) {
    DecodeNotes notes;
    if (png) {
      notes = DecodePng(bytes, colors, depth, image);
    } else if (tiff) {
      notes = DecodeTiff(bytes, colors, depth, image);
    } else {
      DecodeNetpbm(bytes, colors, image);
    }
    *held = {0, 0, 1, image->height, image->width};
    return notes;
  }
  if (const char* name = ForeignFormat(bytes)) {
    throw ImageError(
        Join("is a ", name, " file, which is not supported; convert it to JPEG or PNG"));
  }
  throw ImageError(
      "is not an image: it does not start like a JPEG, PNG, TIFF, binary PGM or binary PPM file");
}

// Logs each kind of note once; nothing in a program that uses libtrainer.so but not glog, where the
// lines would go to stderr.
void LogNotes(const DecodeNotes& notes, const Image& image, const std::string& name) {
  if (!google::IsGoogleLoggingInitialized()) return;
  if (notes.lost_bits) {
    LOG_FIRST_N(WARNING, 1) << EscapeControl(
        Join(name,
             " has 16 bits per channel; only the upper 8 bits are used, for this and all later "
             "images of this kind. Data and ImageData layers use all 16 bits if the first image "
             "has 16 bits and they do not change colors or parts at random"));
  }
  if (notes.more_pages) {
    LOG_FIRST_N(WARNING, 1) << EscapeControl(
        Join(name, " has several pages; the first one is used, of this and all later files"));
  }
  if (!image.floats.empty()) {
    LOG_FIRST_N(INFO, 1) << EscapeControl(Join(
        name,
        " has 16 bits per channel: its values are 0 to 255 with fractions before mean and scale"));
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
                 const std::string& what, Image* image, BitDepth depth, const CropChooser* choose,
                 DecodedRegion* held) try {
  DecodedRegion whole;
  const DecodeNotes notes =
      Decode(bytes, colors, depth, choose, image, held == nullptr ? &whole : held);
  if (notes.lost_bits || notes.more_pages || !image->floats.empty()) {
    LogNotes(notes, *image, Join(place.ToString(), ": ", what));
  }
} catch (const ImageError& bad) {
  throw Error(ErrorCode::kData, place, Join(what, " ", bad.what()));
}

}  // namespace trainer
