#pragma once
// Rows of Y, Cb and Cr out of a JPEG file: libjpeg decodes the blocks ("raw data"), and what it
// does from there to pixels is done here, into planes. libjpeg itself only makes interleaved rows,
// which would have to be taken apart again.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats.h"
#include "jpeg_errors.h"

namespace trainer {

// Takes rows at full size, one after the other. Throws nothing. As YccToBgr reads them: up to a
// multiple of kYccBlock.
class YccRows {
 public:
  virtual ~YccRows() = default;
  virtual void PutYcc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr) noexcept = 0;
};

// Used for one picture after the other; its memory is reused.
class JpegPlanes {
 public:
  // The sampling of a picture whose header was read, where its planes can be read here: YCbCr in
  // blocks of 8x8 with chroma of full size, half width, or half of both, wider than 4 pixels, for
  // up to that width libjpeg-turbo does not smooth. {0, 0}: another picture.
  static JpegSampling SamplingOf(const jpeg_decompress_struct& jpeg);

  // For a picture whose header was read, and whose sampling is one of those. Throws std::bad_alloc.
  void MakeRoom(const jpeg_decompress_struct& jpeg);
  // After jpeg_start_decompress with `raw_data_out`: the rows of the area. May be left by longjmp.
  void Read(jpeg_decompress_struct* jpeg, const Box& area, YccRows* rows);

 private:
  struct Plane {
    int height = 0, width = 0;  // in samples
    int rows = 0;               // that the picture's rows of blocks have of it: 8 or 16
    size_t row_bytes = 0, first = 0;
  };
  // Of each plane the last 2 * `rows` rows are kept: neighbours of the next ones.
  uint8_t* Row(const Plane& plane, int y) {
    return memory_.data() + plane.first +
           static_cast<size_t>(y % (2 * plane.rows)) * plane.row_bytes;
  }
  void ReadBlocks(jpeg_decompress_struct* jpeg, int index);
  int ReadyRows(int blocks) const;
  const uint8_t* FullRow(int c, int y);

  Plane planes_[3];
  JpegSampling sampling_;
  std::vector<uint8_t> memory_;         // of the planes
  std::vector<uint16_t> columns_;       // scratch of UpsampleBoth
  std::vector<uint16_t> upsampled_[2];  // a row of Cb and one of Cr
};

}  // namespace trainer
