#pragma once
// What a JPEG file says about itself, read from its markers without decoding it.

#include <cstdint>
#include <string_view>

namespace trainer {

struct JpegMarkers {
  int height = 0, width = 0;  // 0 without a frame header
  int components = 0;
  bool huffman = false;    // else arithmetic coding
  bool baseline = false;   // sequential, 8 bits
  bool named_rgb = false;  // three components with the numbers 'R', 'G', 'B'
  bool jfif = false;       // JFIF's marker is there
  // Of the first component over that of the others, which are alike; 0: anything else.
  int across = 0, down = 0;
  bool adobe = false;  // Adobe's marker is there, with
  int adobe_transform = 0;
  bool ended = false;   // the marker of the end is there
  int orientation = 1;  // Exif: 1 is upright, 2 to 8 are mirrored and rotated
  int64_t scans = 0;

  // Whether three components are YCbCr, as libjpeg judges.
  bool IsYcc() const { return jfif || (adobe ? adobe_transform == 1 : !named_rgb); }
};

// Never reads outside `bytes`; damaged parts are skipped or end the walk, which leaves the
// judgement to the decoder. Sources: ITU T.81, annex B; Exif 2.3, section 4.6; TIFF 6.0, section 2.
JpegMarkers ReadJpegMarkers(std::string_view bytes);

}  // namespace trainer
