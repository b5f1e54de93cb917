#include <glog/logging.h>

#include "formats.h"
#include "trainer/base/each_cpu.h"
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

// A row of interleaved bytes to three planes.
TRAINER_FOR_EACH_CPU("avx2")  // byte shuffles
void SplitThree(const uint8_t* __restrict in, int width, int64_t plane, uint8_t* __restrict out) {
  uint8_t* __restrict const second = out + plane;
  uint8_t* __restrict const third = out + 2 * plane;
  for (int x = 0; x < width; ++x) {
    out[x] = in[3 * x];
    second[x] = in[3 * x + 1];
    third[x] = in[3 * x + 2];
  }
}

}  // namespace

void CheckSize(int64_t height, int64_t width) {
  if (height < 1 || width < 1) {
    throw ImageError(
        Join("claims to have ", width, "x", height, " pixels; there must be at least one"));
  }
  if (height > kMaxPixels / width) {
    throw ImageError(Join("claims to have ", width, "x", height, " pixels; at most ", kMaxPixels,
                          " are allowed: scale it down"));
  }
}

void AllocateImage(int channels, int height, int width, ColorMode colors, Image* image) {
  image->channels = colors == ColorMode::kAsStored ? channels : colors == ColorMode::kColor ? 3 : 1;
  image->height = height;
  image->width = width;
  image->pixels.resize(static_cast<size_t>(image->Plane()) * static_cast<size_t>(image->channels));
}

void StoreRow(const uint8_t* bytes, int channels, ColorMode colors, int y, Image* image) noexcept {
  const int width = image->width;
  uint8_t* out = image->pixels.data() + int64_t{y} * width;
  if (channels == 3 && image->channels == 3) return SplitThree(bytes, width, image->Plane(), out);
  if (colors == ColorMode::kGray && channels >= 3) {
    for (int x = 0; x < width; ++x, bytes += channels)
      out[x] = GrayOf(bytes[0], bytes[1], bytes[2]);
    return;
  }
  for (int c = 0; c < image->channels; ++c, out += image->Plane()) {
    const uint8_t* const from = bytes + (channels == 1 ? 0 : c);
    for (int x = 0; x < width; ++x) out[x] = from[int64_t{x} * channels];
  }
}

void FromInterleaved(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                     Image* image) {
  AllocateImage(channels, height, width, colors, image);
  for (int y = 0; y < height; ++y, bytes += int64_t{width} * channels) {
    StoreRow(bytes, channels, colors, y, image);
  }
}

void FromInterleaved16(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                       Image* image) {
  constexpr float kUnit = 257;  // 65535 / 255
  AllocateImage(channels, height, width, colors, image);
  image->floats.resize(image->pixels.size());
  image->pixels.clear();
  const int64_t plane = image->Plane();
  for (int64_t at = 0; at < plane; ++at, bytes += 2 * channels) {
    const auto value = [&](int c) {
      return static_cast<float>(bytes[2 * c] << 8 | bytes[2 * c + 1]) / kUnit;
    };
    if (colors == ColorMode::kGray && channels >= 3) {
      image->floats[static_cast<size_t>(at)] =
          0.114f * value(0) + 0.587f * value(1) + 0.299f * value(2);
      continue;
    }
    for (int c = 0; c < image->channels; ++c) {
      image->floats[static_cast<size_t>(c * plane + at)] = value(channels == 1 ? 0 : c);
    }
  }
}

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
