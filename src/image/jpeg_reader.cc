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

bool CatchJpegError(JpegErrors* errors, void (*step)(void*), void* argument) {
  if (setjmp(errors->back) != 0) return false;
  step(argument);
  return true;
}

struct JpegReader::Task {
  jpeg_decompress_struct* jpeg = nullptr;
  std::string_view bytes;
  const JpegPart* part = nullptr;
  ColorMode colors = ColorMode::kAsStored;
  Image* image = nullptr;
  uint8_t* pixels = nullptr;  // kRowsAtOnce rows
  size_t row_bytes = 0;       // from one of them to the next
  JDIMENSION column = 0;      // the picture's column at which these rows start
};

JpegReader::JpegReader() {
  jpeg_.err = PrepareErrors(&errors_);
  const auto make = [](void* jpeg) {
    jpeg_create_decompress(static_cast<jpeg_decompress_struct*>(jpeg));
  };
  if (!CatchJpegError(&errors_, make, &jpeg_)) {
    throw Error(ErrorCode::kResource, Join("cannot start the JPEG decoder: ", errors_.text));
  }
}

JpegReader::~JpegReader() { jpeg_destroy_decompress(&jpeg_); }

void JpegReader::ReadHeader(void* of) {
  auto* const task = static_cast<Task*>(of);
  jpeg_decompress_struct& jpeg = *task->jpeg;
  jpeg_mem_src(&jpeg, reinterpret_cast<const uint8_t*>(task->bytes.data()), task->bytes.size());
  jpeg_read_header(&jpeg, TRUE);
}

void JpegReader::Start(void* of) {
  auto* const task = static_cast<Task*>(of);
  jpeg_decompress_struct& jpeg = *task->jpeg;
  const JpegPart& part = *task->part;
  jpeg.out_color_space = part.space;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.scale_num = 1;
  jpeg.scale_denom = static_cast<unsigned>(part.scale_denom);
  jpeg_start_decompress(&jpeg);
  // A file of several scans is decoded whole: the library reads all of it before the first row, and
  // it predicts missing coefficients from blocks farther away than the margin.
  const auto left = static_cast<JDIMENSION>(part.area.left), right = left + part.area.width;
  if (!jpeg_has_multiple_scans(&jpeg)) {
    const auto margin = static_cast<JDIMENSION>(2 * jpeg.max_h_samp_factor);
    const JDIMENSION end = std::min(jpeg.output_width, right + margin);
    task->column = left > margin ? left - margin : 0;
    JDIMENSION width = end - task->column;
    jpeg_crop_scanline(&jpeg, &task->column, &width);
  }
}

void JpegReader::CopyRows(void* of) {
  auto* const task = static_cast<Task*>(of);
  jpeg_decompress_struct& jpeg = *task->jpeg;
  const Rect& area = task->part->area;
  const auto top = static_cast<JDIMENSION>(area.top), end = top + area.height;
  const int channels = jpeg.output_components;
  const size_t skipped =
      (static_cast<size_t>(area.left) - task->column) * static_cast<size_t>(channels);
  JSAMPROW lines[kRowsAtOnce];
  for (int i = 0; i < kRowsAtOnce; ++i) lines[i] = task->pixels + task->row_bytes * i;
  if (top > 0 && !jpeg_has_multiple_scans(&jpeg)) jpeg_skip_scanlines(&jpeg, top);
  while (jpeg.output_scanline < end) {
    const JDIMENSION first = jpeg.output_scanline;
    const JDIMENSION wanted = std::min<JDIMENSION>(kRowsAtOnce, end - first);
    const JDIMENSION read = jpeg_read_scanlines(&jpeg, lines, wanted);
    for (JDIMENSION i = 0; i < read; ++i) {
      if (first + i < top) continue;
      uint8_t* const row = lines[i] + skipped;
      if (channels == 4) CmykToBgr(row, area.width);
      StoreRow(row, std::min(channels, 3), task->colors, static_cast<int>(first + i - top),
               task->image);
    }
  }
  // The end of the file is checked if no row was skipped.
  if (end == jpeg.output_height) jpeg_finish_decompress(&jpeg);
}

// Returns false if the library reported an error. Allocates outside of CatchJpegError, which
// longjmps.
bool JpegReader::Steps(Task* task) {
  if (!CatchJpegError(&errors_, ReadHeader, task)) return false;
  if (!CatchJpegError(&errors_, Start, task)) return false;
  const size_t bytes_of_row =
      size_t{jpeg_.output_width} * static_cast<size_t>(jpeg_.output_components);
  task->row_bytes = (bytes_of_row + kRowUnit - 1) / kRowUnit * kRowUnit;
  pixels_.resize(task->row_bytes * kRowsAtOnce + kRowOffset);
  task->pixels = pixels_.data() + kRowOffset;
  return CatchJpegError(&errors_, CopyRows, task);
}

const char* JpegReader::Read(std::string_view bytes, const JpegPart& part, ColorMode colors,
                             Image* image) {
  Task task{.jpeg = &jpeg_, .bytes = bytes, .part = &part, .colors = colors, .image = image};
  const bool good = Steps(&task);
  jpeg_abort_decompress(&jpeg_);
  return good ? nullptr : errors_.text;
}

}  // namespace trainer
