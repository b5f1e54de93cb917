#include <png.h>
#include <turbojpeg.h>

#include <memory>

#include "trainer/base/text.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

std::vector<uint8_t> Interleaved(const Image& image) {
  std::vector<uint8_t> out(image.pixels.size());
  const auto plane = static_cast<size_t>(image.Plane());
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < plane; ++i) out[i * channels + c] = image.pixels[c * plane + i];
  }
  return out;
}

[[noreturn]] void Fail(const char* what) {
  throw Error(ErrorCode::kResource, Join("cannot encode an image: ", what));
}

std::string EncodeJpeg(const Image& image, int quality) {
  const bool gray = image.channels == 1;
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitCompress(), tjDestroy);
  if (handle == nullptr) Fail("no memory");
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int failed = tjCompress2(handle.get(), Interleaved(image).data(), image.width, 0,
                                 image.height, gray ? TJPF_GRAY : TJPF_BGR, &bytes, &size,
                                 gray ? TJSAMP_GRAY : TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (failed != 0) Fail(tjGetErrorStr2(handle.get()));
  return {reinterpret_cast<const char*>(bytes), size};
}

std::string EncodePng(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_BGR;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, Interleaved(image).data(), 0,
                                nullptr) == 0) {
    Fail(png.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string EncodeImage(const Image& image, const std::string& type, int quality) {
  if (type == "jpg" || type == "jpeg") return EncodeJpeg(image, quality);
  if (type == "png") return EncodePng(image);
  throw Error(ErrorCode::kUsage,
              Join("images are not encoded as '", EscapeControl(type), "'; choose jpg or png"));
}

}  // namespace trainer
