#pragma once

// jpeglib.h needs what <cstdio> declares.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <csetjmp>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codecs.h"

namespace trainer {

// Errors of libjpeg-turbo leave its calls by longjmp.
struct JpegErrors {
  jpeg_error_mgr manager;  // first, because the library passes its address
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];  // of the last error
};

// Installed as `err` of a jpeg_decompress_struct or jpeg_compress_struct. Warnings are errors,
// because the library warns when it replaces damaged pixels by invented ones.
jpeg_error_mgr* PrepareErrors(JpegErrors* errors);

// Calls step(). Returns false if the library met an error. No C++ object that needs a destructor
// may be alive in `step` while it calls the library.
template <class Step>
[[gnu::noinline]] bool CatchJpegError(JpegErrors* errors, const Step& step) {
  if (setjmp(errors->back) != 0) return false;
  step();
  return true;
}

// The part of a picture to decode. Rows and columns count in the picture scaled to 1/scale_denom of
// its size, which has ceil(height / scale_denom) rows.
struct JpegPart {
  J_COLOR_SPACE space = JCS_EXT_BGR;
  int scale_denom = 1;  // 1, 2, 4 or 8
  Rect area;
};

// Decodes one file after the other and reuses its buffers. Use it from one thread at a time.
class JpegReader {
 public:
  JpegReader();  // throws kResource
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Decodes the part into `image`, which AllocateImage has shaped for it. The pixels equal those of
  // the whole image bit for bit: a margin is decoded, too, because chroma is interpolated between
  // neighbours. Rows below are skipped if the file has one scan. Returns null, or why the file is
  // damaged (any warning of the library counts), valid until the next call.
  const char* Read(std::string_view bytes, const JpegPart& part, ColorMode colors, Image* image);

 private:
  // For CatchJpegError. Start returns the picture's column at which the decoded rows begin.
  void Start(const JpegPart& part, JDIMENSION* column);
  void CopyRows(const JpegPart& part, ColorMode colors, JDIMENSION column, size_t row_bytes,
                Image* image);
  bool Steps(std::string_view bytes, const JpegPart& part, ColorMode colors, Image* image);

  jpeg_decompress_struct jpeg_ = {};
  JpegErrors errors_ = {};
  std::vector<uint8_t> pixels_;  // of some rows
};

}  // namespace trainer
