#pragma once
// Rows of pixels out of a JPEG file: libjpeg-turbo's own interface, which reads parts of pictures.
// Where the picture allows that, and it is no slower, the rows are made from libjpeg's planes
// (`jpeg_planes.h`).

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "jpeg_errors.h"
#include "jpeg_planes.h"

namespace trainer {

// What is read of a picture. Rows and columns are those of the picture decoded at 1/shrink of its
// size: ceil(height / shrink) rows.
struct JpegPart {
  J_COLOR_SPACE space = JCS_EXT_BGR;
  int shrink = 1;  // 1, 2, 4 or 8
  Box area;
};

// Takes the rows of the part, from its first one on: those of JCS_EXT_BGR by Put or by PutYcc,
// whose colours YccToBgr makes, others by Put. Throws nothing.
class JpegRows : public YccRows {
 public:
  // `row` holds the part's pixels, and may be written to.
  virtual void Put(uint8_t* row) noexcept = 0;
};

enum class JpegWay {
  kBest,    // what is fastest
  kRows,    // libjpeg's rows
  kPlanes,  // libjpeg's planes, of a picture that has a JpegPlanes::SamplingOf
};

// Decodes one file after the other; its memory is reused. One thread at a time.
class JpegReader {
 public:
  JpegReader();  // throws kResource
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // The pixels are those that decoding the whole picture gives, bit for bit: colours are stored at
  // half the size and made from their neighbours, so a margin is decoded around the part. Rows
  // below are not looked at where the file allows that. Null, or why the file is damaged: any
  // warning of the library counts. Valid until the next call.
  const char* Read(std::string_view bytes, const JpegPart& part, JpegRows* rows,
                   JpegWay way = JpegWay::kBest);

 private:
  struct Task;
  // Steps of a Task, for Guarded.
  static void ReadHeader(void* of);
  static void Start(void* of);
  static void CopyRows(void* of);
  static void CopyPlanes(void* of);
  bool Steps(Task* task, JpegWay way);

  jpeg_decompress_struct jpeg_ = {};
  JpegErrors errors_ = {};
  std::vector<uint8_t> pixels_;  // of some rows
  JpegPlanes planes_;
};

}  // namespace trainer
