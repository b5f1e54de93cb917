#include "formats.h"
#include "trainer/base/each_cpu.h"
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

void Decode(std::string_view bytes, Colors colors, const ChoosePart* choose, Image* image,
            HeldPart* held) {
  if (bytes.empty()) throw BadImage("is empty");
  if (HasAt(bytes, 0, "\xff\xd8")) return DecodeJpeg(bytes, colors, choose, image, held);
  const bool png = HasAt(bytes, 0, "\x89PNG\r\n\x1a\n");
  if (png || HasAt(bytes, 0, "P5") || HasAt(bytes, 0, "P6")) {
    png ? DecodePng(bytes, colors, image) : DecodeNetpbm(bytes, colors, image);
    *held = {0, 0, 1, image->height, image->width};
    return;
  }
  if (const char* name = ForeignFormat(bytes)) {
    throw BadImage(Join("is a ", name, " file, which is not read; convert it to JPEG or PNG"));
  }
  throw BadImage(
      "is not an image: its first bytes are neither JPEG's nor PNG's nor those of a binary PGM or "
      "PPM");
}

void DecodeAt(std::string_view bytes, Colors colors, const ChoosePart* choose,
              const SourceRef& place, const std::string& what, Image* image, HeldPart* held) {
  try {
    Decode(bytes, colors, choose, image, held);
  } catch (const BadImage& bad) {
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
    throw BadImage(Join("claims ", width, "x", height, " pixels; there must be at least one"));
  }
  if (height > kMaxPixels / width) {
    throw BadImage(Join("claims ", width, "x", height, " pixels; at most ", kMaxPixels,
                        " are read: scale it down"));
  }
}

void SetForm(int channels, int height, int width, Colors colors, Image* image) {
  image->channels = colors == Colors::kAsStored ? channels : colors == Colors::kColor ? 3 : 1;
  image->height = height;
  image->width = width;
  image->pixels.resize(static_cast<size_t>(image->Plane()) * static_cast<size_t>(image->channels));
}

void PutRow(const uint8_t* bytes, int channels, Colors colors, int y, Image* image) noexcept {
  const int width = image->width;
  uint8_t* out = image->pixels.data() + int64_t{y} * width;
  if (channels == 3 && image->channels == 3) return SplitThree(bytes, width, image->Plane(), out);
  if (colors == Colors::kGray && channels >= 3) {
    for (int x = 0; x < width; ++x, bytes += channels)
      out[x] = GrayOf(bytes[0], bytes[1], bytes[2]);
    return;
  }
  for (int c = 0; c < image->channels; ++c, out += image->Plane()) {
    const uint8_t* const from = bytes + (channels == 1 ? 0 : c);
    for (int x = 0; x < width; ++x) out[x] = from[int64_t{x} * channels];
  }
}

void FromInterleaved(const uint8_t* bytes, int channels, int height, int width, Colors colors,
                     Image* image) {
  SetForm(channels, height, width, colors, image);
  for (int y = 0; y < height; ++y, bytes += int64_t{width} * channels) {
    PutRow(bytes, channels, colors, y, image);
  }
}

int ShrinkOf(const PartNeed& need) {
  for (int shrink = 8; shrink > 1 && need.height > 0; shrink /= 2) {
    if (need.box.height >= int64_t{need.height} * shrink &&
        need.box.width >= int64_t{need.width} * shrink) {
      return shrink;
    }
  }
  return 1;
}

void DecodeImage(std::string_view bytes, Colors colors, const SourceRef& place,
                 const std::string& what, Image* image) {
  HeldPart whole;
  DecodeAt(bytes, colors, nullptr, place, what, image, &whole);
}

void DecodePart(std::string_view bytes, Colors colors, const ChoosePart& choose,
                const SourceRef& place, const std::string& what, Image* image, HeldPart* held) {
  DecodeAt(bytes, colors, &choose, place, what, image, held);
}

}  // namespace trainer
