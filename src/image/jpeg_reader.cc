#include "jpeg_reader.h"

#include <algorithm>

#include "jpeg_planes_check.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr int kRowsAtOnce = 4;  // stay in the cache until they are put in place
// libjpeg-turbo writes rows that begin at a multiple of 16 or 32 bytes past the caches, from where
// they would have to be read again. So none does.
constexpr size_t kRowUnit = 32, kRowOffset = 1;

// Whether planes are the faster way to the part. All blocks down to its last row are decoded for
// them, for rows only those that it touches: 0.85 of these blocks are as fast as all of them in
// planes. In a file of several scans all are decoded in any case.
bool SuitPlanes(jpeg_decompress_struct* jpeg, const JpegPart& part) {
  if (part.space != JCS_EXT_BGR || part.shrink != 1) return false;
  const Box& area = part.area;
  const int64_t decoded = int64_t{area.top + area.height} * jpeg->image_width;
  return jpeg_has_multiple_scans(jpeg) != FALSE ||
         20 * int64_t{area.height} * area.width >= 17 * decoded;
}

// What follows the last row is looked at where nothing was left out.
void FinishAt(JDIMENSION row, jpeg_decompress_struct* jpeg) {
  if (row == jpeg->output_height) jpeg_finish_decompress(jpeg);
}

}  // namespace

struct JpegReader::Task {
  jpeg_decompress_struct* jpeg = nullptr;
  std::string_view bytes;
  const JpegPart* part = nullptr;
  JpegRows* rows = nullptr;
  JpegPlanes* planes = nullptr;  // null: the library's rows are read
  uint8_t* pixels = nullptr;     // kRowsAtOnce rows
  size_t row_bytes = 0;          // from one of them to the next
  JDIMENSION column = 0;         // of the picture, with which they begin
};

JpegReader::JpegReader() {
  jpeg_.err = PrepareErrors(&errors_);
  const auto make = [](void* jpeg) {
    jpeg_create_decompress(static_cast<jpeg_decompress_struct*>(jpeg));
  };
  if (!Guarded(&errors_, make, &jpeg_)) {
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
  jpeg.scale_denom = static_cast<unsigned>(part.shrink);
  jpeg.raw_data_out = task->planes != nullptr ? TRUE : FALSE;
  jpeg_start_decompress(&jpeg);
  // In several scans all of a picture is read before the first row comes out, and what was not sent
  // yet is guessed from blocks further away than the margin: these are decoded whole.
  const auto left = static_cast<JDIMENSION>(part.area.left), right = left + part.area.width;
  if (task->planes == nullptr && !jpeg_has_multiple_scans(&jpeg)) {
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
  const Box& area = task->part->area;
  const auto top = static_cast<JDIMENSION>(area.top), end = top + area.height;
  const size_t skipped =
      (static_cast<size_t>(area.left) - task->column) * static_cast<size_t>(jpeg.output_components);
  JSAMPROW lines[kRowsAtOnce];
  for (int i = 0; i < kRowsAtOnce; ++i) lines[i] = task->pixels + task->row_bytes * i;
  if (top > 0 && !jpeg_has_multiple_scans(&jpeg)) jpeg_skip_scanlines(&jpeg, top);
  while (jpeg.output_scanline < end) {
    const JDIMENSION first = jpeg.output_scanline;
    const JDIMENSION wanted = std::min<JDIMENSION>(kRowsAtOnce, end - first);
    const JDIMENSION read = jpeg_read_scanlines(&jpeg, lines, wanted);
    for (JDIMENSION i = 0; i < read; ++i) {
      if (first + i >= top) task->rows->Put(lines[i] + skipped);
    }
  }
  FinishAt(end, &jpeg);
}

void JpegReader::CopyPlanes(void* of) {
  auto* const task = static_cast<Task*>(of);
  const Box& area = task->part->area;
  task->planes->Read(task->jpeg, area, task->rows);
  FinishAt(static_cast<JDIMENSION>(area.top + area.height), task->jpeg);
}

// False where the library met an error. Between its calls memory is made room in.
bool JpegReader::Steps(Task* task, JpegWay way) {
  if (!Guarded(&errors_, ReadHeader, task)) return false;
  if (way == JpegWay::kPlanes || (way == JpegWay::kBest && SuitPlanes(&jpeg_, *task->part) &&
                                  PlanesEqualRows(JpegPlanes::SamplingOf(jpeg_)))) {
    planes_.MakeRoom(jpeg_);
    task->planes = &planes_;
  }
  if (!Guarded(&errors_, Start, task)) return false;
  if (task->planes != nullptr) return Guarded(&errors_, CopyPlanes, task);
  const size_t bytes_of_row =
      size_t{jpeg_.output_width} * static_cast<size_t>(jpeg_.output_components);
  task->row_bytes = (bytes_of_row + kRowUnit - 1) / kRowUnit * kRowUnit;
  pixels_.resize(task->row_bytes * kRowsAtOnce + kRowOffset);
  task->pixels = pixels_.data() + kRowOffset;
  return Guarded(&errors_, CopyRows, task);
}

const char* JpegReader::Read(std::string_view bytes, const JpegPart& part, JpegRows* rows,
                             JpegWay way) {
  Task task{.jpeg = &jpeg_, .bytes = bytes, .part = &part, .rows = rows};
  const bool good = Steps(&task, way);
  jpeg_abort_decompress(&jpeg_);
  return good ? nullptr : errors_.text;
}

}  // namespace trainer
