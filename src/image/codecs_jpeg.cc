#include <algorithm>
#include <memory>
#include <utility>

#include "codecs.h"
#include "jpeg_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kMaxScans = 100;  // progressive pictures have about ten

// Facts about a JPEG file, read from its markers without decoding it.
struct JpegHeader {
  int height = 0, width = 0;  // 0 without a frame header
  int components = 0;
  bool huffman = false;  // else arithmetic coding
  bool adobe = false;    // Adobe's marker is there
  bool ended = false;    // the marker of the end is there
  int orientation = 1;   // Exif: 1 is upright, 2 to 8 are mirrored and rotated
  int64_t scans = 0;
};

// Numbers from a range of bytes; outside it, 0 is read.
class Reader {
 public:
  Reader(std::string_view bytes, bool little) : bytes_(bytes), little_(little) {}
  uint32_t Byte(size_t at) const {
    return at < bytes_.size() ? static_cast<uint8_t>(bytes_[at]) : 0;
  }
  uint32_t Word(size_t at) const { return Pair(Byte(at), Byte(at + 1), 8); }
  uint32_t Long(size_t at) const { return Pair(Word(at), Word(at + 2), 16); }

 private:
  uint32_t Pair(uint32_t first, uint32_t second, int bits) const {
    return little_ ? second << bits | first : first << bits | second;
  }
  std::string_view bytes_;
  bool little_;
};

int ReadOrientation(std::string_view exif) {
  constexpr uint32_t kTag = 0x0112, kShort = 3;
  constexpr size_t kEntryBytes = 12;
  const Reader in(exif, exif.starts_with("II"));
  if (!exif.starts_with("II") && !exif.starts_with("MM")) return 1;
  if (in.Word(2) != 42) return 1;
  const size_t start = in.Long(4);
  const size_t entries = in.Word(start);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = start + 2 + i * kEntryBytes;
    if (at + kEntryBytes > exif.size()) return 1;
    if (in.Word(at) != kTag || in.Word(at + 2) != kShort) continue;
    const uint32_t value = in.Word(at + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// Start of frame; the others of this range are tables (C4, CC) and reserved (C8).
bool IsFrame(uint32_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

void ReadSegment(uint32_t marker, std::string_view body, JpegHeader* found) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  const Reader in(body, false);
  if (IsFrame(marker) && found->components == 0) {
    found->height = static_cast<int>(in.Word(1));
    found->width = static_cast<int>(in.Word(3));
    found->components = static_cast<int>(in.Byte(5));
    found->huffman = marker < 0xC8;
  }
  if (marker == 0xE1 && body.starts_with(kExif)) {
    found->orientation = ReadOrientation(body.substr(kExif.size()));
  }
  if (marker == 0xEE && body.starts_with("Adobe")) found->adobe = true;
}

// Never reads outside `bytes`; damaged parts are skipped or end the walk, which leaves the
// judgement to the decoder. Sources: ITU T.81, annex B; Exif 2.3, section 4.6; TIFF 6.0, section 2.
JpegHeader ReadJpegMarkers(std::string_view bytes) {
  JpegHeader found;
  const Reader in(bytes, false);
  size_t at = 2;
  while (at + 4 <= bytes.size()) {
    const uint32_t marker = in.Byte(at + 1);
    // In a scan's data FF is followed by 0, by a restart marker, or begins the next segment.
    const bool bare = marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD8);
    if (in.Byte(at) != 0xFF || marker == 0xFF || bare) {
      const size_t next = bytes.find('\xff', at + 1);
      if (next == std::string_view::npos) break;
      at = next;
      continue;
    }
    if (marker == 0xD9) break;
    const size_t length = std::max<size_t>(in.Word(at + 2), 2);
    if (marker == 0xDA) ++found.scans;
    ReadSegment(marker, bytes.substr(at + 4, length - 2), &found);
    at += 2 + length;
  }
  found.ended = bytes.find("\xff\xd9", at) != std::string_view::npos;
  return found;
}

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
