#include "jpeg_reader.h"

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int kRowsAtOnce = 4;  // they stay in the cache until StoreRow copies them
// libjpeg-turbo writes rows that start at a multiple of 16 or 32 bytes with non-temporal stores, so
// that StoreRow would read them from main memory. An odd start avoids that.
constexpr size_t kRowUnit = 32, kRowOffset = 1;

// Adobe's CMYK is stored inverted: a channel of 255 is no ink.
void CmykToBgr(uint8_t* pixels, int width) {
  const uint8_t* in = pixels;
  for (uint8_t* out = pixels; out != pixels + 3 * width; in += 4, out += 3) {
    const int black = in[3];
    const auto mix = [black](int ink) {
      return static_cast<uint8_t>(black - ((255 - ink) * black >> 8));
    };
    const uint8_t blue = mix(in[2]), green = mix(in[1]), red = mix(in[0]);
    out[0] = blue;
    out[1] = green;
    out[2] = red;
  }
}

void LeaveByLongjmp(j_common_ptr jpeg) {
  auto* const errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->text);
  std::longjmp(errors->back, 1);
}

void LeaveAtWarning(j_common_ptr jpeg, int level) {
  if (level < 0) LeaveByLongjmp(jpeg);
}

}  // namespace

jpeg_error_mgr* PrepareErrors(JpegErrors* errors) {
  jpeg_std_error(&errors->manager);
  errors->manager.error_exit = LeaveByLongjmp;
  errors->manager.emit_message = LeaveAtWarning;
  return &errors->manager;
}

JpegReader::JpegReader() {
  jpeg_.err = PrepareErrors(&errors_);
  if (!CatchJpegError(&errors_, [&] { jpeg_create_decompress(&jpeg_); })) {
    throw Error(ErrorCode::kResource, Join("cannot start the JPEG decoder: ", errors_.text));
  }
}

JpegReader::~JpegReader() { jpeg_destroy_decompress(&jpeg_); }

void JpegReader::Start(const JpegPart& part, JDIMENSION* column) {
  jpeg_.out_color_space = part.space;
  jpeg_.dct_method = JDCT_ISLOW;
  jpeg_.scale_num = 1;
  jpeg_.scale_denom = static_cast<unsigned>(part.scale_denom);
  jpeg_start_decompress(&jpeg_);
  // A file of several scans is decoded whole: the library reads all of it before the first row, and
  // it predicts missing coefficients from blocks farther away than the margin.
  const auto left = static_cast<JDIMENSION>(part.area.left), right = left + part.area.width;
  if (jpeg_has_multiple_scans(&jpeg_)) return;
  const auto margin = static_cast<JDIMENSION>(2 * jpeg_.max_h_samp_factor);
  const JDIMENSION end = std::min(jpeg_.output_width, right + margin);
  *column = left > margin ? left - margin : 0;
  JDIMENSION width = end - *column;
  jpeg_crop_scanline(&jpeg_, column, &width);
}

void JpegReader::CopyRows(const JpegPart& part, ColorMode colors, JDIMENSION column,
                          size_t row_bytes, Image* image) {
  const Rect& area = part.area;
  const auto top = static_cast<JDIMENSION>(area.top), end = top + area.height;
  const int channels = jpeg_.output_components;
  const size_t skipped = (static_cast<size_t>(area.left) - column) * static_cast<size_t>(channels);
  JSAMPROW lines[kRowsAtOnce];
  for (int i = 0; i < kRowsAtOnce; ++i) lines[i] = pixels_.data() + kRowOffset + row_bytes * i;
  if (top > 0 && !jpeg_has_multiple_scans(&jpeg_)) jpeg_skip_scanlines(&jpeg_, top);
  while (jpeg_.output_scanline < end) {
    const JDIMENSION first = jpeg_.output_scanline;
    const JDIMENSION wanted = std::min<JDIMENSION>(kRowsAtOnce, end - first);
    const JDIMENSION read = jpeg_read_scanlines(&jpeg_, lines, wanted);
    for (JDIMENSION i = 0; i < read; ++i) {
      if (first + i < top) continue;
      uint8_t* const row = lines[i] + skipped;
      if (channels == 4) CmykToBgr(row, area.width);
      StoreRow(row, std::min(channels, 3), colors, static_cast<int>(first + i - top), image);
    }
  }
  // The end of the file is checked if no row was skipped.
  if (end == jpeg_.output_height) jpeg_finish_decompress(&jpeg_);
}

// Returns false if the library reported an error. Allocates only outside of CatchJpegError.
bool JpegReader::Steps(std::string_view bytes, const JpegPart& part, ColorMode colors,
                       Image* image) {
  const auto read_header = [&] {
    jpeg_mem_src(&jpeg_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
  };
  JDIMENSION column = 0;
  if (!CatchJpegError(&errors_, read_header)) return false;
  if (!CatchJpegError(&errors_, [&] { Start(part, &column); })) return false;
  const size_t bytes_of_row =
      size_t{jpeg_.output_width} * static_cast<size_t>(jpeg_.output_components);
  const size_t row_bytes = (bytes_of_row + kRowUnit - 1) / kRowUnit * kRowUnit;
  pixels_.resize(row_bytes * kRowsAtOnce + kRowOffset);
  return CatchJpegError(&errors_, [&] { CopyRows(part, colors, column, row_bytes, image); });
}

const char* JpegReader::Read(std::string_view bytes, const JpegPart& part, ColorMode colors,
                             Image* image) {
  const bool good = Steps(bytes, part, colors, image);
  jpeg_abort_decompress(&jpeg_);
  return good ? nullptr : errors_.text;
}

}  // namespace trainer
