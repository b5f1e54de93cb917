#include "formats.h"
#include "trainer/base/text.h"

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

void Decode(std::string_view bytes, Colors colors, Image* image) {
  if (bytes.empty()) throw BadImage("is empty");
  if (HasAt(bytes, 0, "\xff\xd8")) return DecodeJpeg(bytes, colors, image);
  if (HasAt(bytes, 0, "\x89PNG\r\n\x1a\n")) return DecodePng(bytes, colors, image);
  if (HasAt(bytes, 0, "P5") || HasAt(bytes, 0, "P6")) return DecodeNetpbm(bytes, colors, image);
  if (const char* name = ForeignFormat(bytes)) {
    throw BadImage(Join("is a ", name, " file, which is not read; convert it to JPEG or PNG"));
  }
  throw BadImage(
      "is not an image: its first bytes are neither JPEG's nor PNG's nor those of a binary PGM or "
      "PPM");
}

}  // namespace

void CheckSize(int64_t height, int64_t width) {
  if (height < 1 || width < 1) {
    throw BadImage(Join("claims ", width, "x", height, " pixels; there must be at least one"));
  }
  if (height > kMaxPixels / width) {
    throw BadImage(Join("claims ", width, "x", height, " pixels; at most ", kMaxPixels,
                        " are read: scale it down"));
  }
}

void FromInterleaved(const uint8_t* bytes, int channels, int height, int width, Colors colors,
                     Image* image) {
  const bool to_gray = colors == Colors::kGray && channels >= 3;
  const int kept = colors == Colors::kAsStored ? channels : colors == Colors::kColor ? 3 : 1;
  image->channels = kept;
  image->height = height;
  image->width = width;
  const auto plane = static_cast<size_t>(image->Plane());
  image->pixels.resize(plane * static_cast<size_t>(kept));
  uint8_t* out = image->pixels.data();
  if (to_gray) {
    for (size_t i = 0; i < plane; ++i, bytes += channels) {
      out[i] = GrayOf(bytes[0], bytes[1], bytes[2]);
    }
    return;
  }
  for (int c = 0; c < kept; ++c, out += plane) {
    const uint8_t* from = bytes + (channels == 1 ? 0 : c);
    for (size_t i = 0; i < plane; ++i) out[i] = from[i * static_cast<size_t>(channels)];
  }
}

void DecodeImage(std::string_view bytes, Colors colors, const SourceRef& place,
                 const std::string& what, Image* image) {
  try {
    Decode(bytes, colors, image);
  } catch (const BadImage& bad) {
    throw Error(ErrorCode::kData, place, Join(what, " ", bad.what()));
  }
}

}  // namespace trainer
