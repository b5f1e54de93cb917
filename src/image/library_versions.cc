#include "trainer/image/library_versions.h"

#include <png.h>

#include "jpeg_reader.h"
#include "trainer/base/text/text.h"

#ifdef TRAINER_TIFF
#include <tiffio.h>
#endif

namespace trainer {
namespace {

#ifdef LIBJPEG_TURBO_VERSION_NUMBER
std::pair<std::string, std::string> JpegVersion() {
  constexpr int kNumber = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005 for 2.1.5
  return {"libjpeg-turbo",
          Join(kNumber / 1000000, ".", kNumber / 1000 % 1000, ".", kNumber % 1000)};
}
#else
std::pair<std::string, std::string> JpegVersion() { return {"libjpeg", Join(JPEG_LIB_VERSION)}; }
#endif

}  // namespace

std::vector<std::pair<std::string, std::string>> ImageLibraryVersions() {
  std::vector<std::pair<std::string, std::string>> versions = {
      JpegVersion(), {"libpng", png_get_libpng_ver(nullptr)}};
#ifdef TRAINER_TIFF
  const std::string text = TIFFGetVersion();  // "LIBTIFF, Version 4.5.0", and lines of a license
  const size_t number = text.find_first_of("0123456789");
  if (number != std::string::npos) {
    versions.emplace_back("libtiff", text.substr(number, text.find('\n') - number));
  }
#endif
  return versions;
}

}  // namespace trainer
