#pragma once
// Facts about a JPEG file, read from its markers without decoding it.

#include <cstdint>
#include <string_view>

namespace trainer {

struct JpegHeader {
  int height = 0, width = 0;  // 0 without a frame header
  int components = 0;
  bool huffman = false;  // else arithmetic coding
  bool adobe = false;    // Adobe's marker is there
  bool ended = false;    // the marker of the end is there
  int orientation = 1;   // Exif: 1 is upright, 2 to 8 are mirrored and rotated
  int64_t scans = 0;
};

// Never reads outside `bytes`; damaged parts are skipped or end the walk, which leaves the
// judgement to the decoder. Sources: ITU T.81, annex B; Exif 2.3, section 4.6; TIFF 6.0, section 2.
JpegHeader ReadJpegMarkers(std::string_view bytes);

}  // namespace trainer
