#include "jpeg_header.h"

#include <algorithm>

namespace trainer {
namespace {

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

}  // namespace

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

}  // namespace trainer
