#pragma once
// Errors of libjpeg-turbo, which leave its calls by longjmp.

// clang-format off: jpeglib.h needs what <cstdio> declares.
#include <jpeglib.h>

#include <cstdio>
// clang-format on

#include <csetjmp>

namespace trainer {

struct JpegErrors {
  jpeg_error_mgr manager;  // first, as the library hands on its address
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];  // of the last error
};

// Installed as `err` of a jpeg_decompress_struct or jpeg_compress_struct. Warnings are errors,
// because the library warns when it replaces damaged pixels by invented ones.
jpeg_error_mgr* PrepareErrors(JpegErrors* errors);

// Calls step(argument); false where the library met an error. No C++ object that needs a destructor
// may be alive in `step` while it calls the library.
bool CatchJpegError(JpegErrors* errors, void (*step)(void*), void* argument);

}  // namespace trainer
