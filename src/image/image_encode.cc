#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "codecs.h"
#include "jpeg_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

template <class To, class From>
std::vector<To> Interleaved(const Image& image, const std::vector<From>& numbers) {
  std::vector<To> out(numbers.size());
  const auto plane = static_cast<size_t>(image.Plane());
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < plane; ++i) {
      out[i * channels + c] = static_cast<To>(numbers[c * plane + i]);
    }
  }
  return out;
}

[[noreturn]] void FailEncoding(const char* what) {
  throw Error(ErrorCode::kResource, Join("cannot encode an image: ", what));
}

std::string EncodePng(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_BGR;
  std::vector<uint8_t> small;
  std::vector<uint16_t> large;
  if (image.floats.empty()) {
    small = Interleaved<uint8_t>(image, image.pixels);
  } else {
    // libpng's name for 16 bits; the numbers are stored without a change of their gamma.
    png.format |= PNG_FORMAT_FLAG_LINEAR;
    std::vector<float> rounded = image.floats;
    for (float& value : rounded)
      value = std::clamp(std::round(value * kUnitOf16Bits), 0.0f, 65535.0f);
    large = Interleaved<uint16_t>(image, rounded);
  }
  const void* const pixels = small.empty() ? static_cast<const void*>(large.data()) : small.data();
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, pixels, 0, nullptr) == 0) {
    FailEncoding(png.message);
  }
  bytes.resize(size);
  return bytes;
}

// With libjpeg's default sampling: chroma of half the width and height.
std::string EncodeJpeg(const Image& image, int quality) {
  std::vector<uint8_t> pixels = Interleaved<uint8_t>(image, image.pixels);
  const bool gray = image.channels == 1;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_compress_struct jpeg = {};
  JpegErrors errors = {};
  jpeg.err = PrepareErrors(&errors);
  const bool done = CatchJpegError(&errors, [&] {
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &size);
    jpeg.image_width = static_cast<JDIMENSION>(image.width);
    jpeg.image_height = static_cast<JDIMENSION>(image.height);
    jpeg.input_components = gray ? 1 : 3;
    jpeg.in_color_space = gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
      const size_t row = size_t{jpeg.image_width} * static_cast<size_t>(jpeg.input_components);
      JSAMPROW line = pixels.data() + jpeg.next_scanline * row;
      jpeg_write_scanlines(&jpeg, &line, 1);
    }
    jpeg_finish_compress(&jpeg);
  });
  const std::unique_ptr<unsigned char, void (*)(void*)> owner(bytes, std::free);
  jpeg_destroy_compress(&jpeg);
  if (!done) FailEncoding(errors.text);
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::string EncodeImage(const Image& image, const std::string& type, int quality) {
  const bool jpeg = type == "jpg" || type == "jpeg";
  if (jpeg && !image.floats.empty()) {
    throw Error(ErrorCode::kUsage,
                "an image with 16 bits per channel cannot be encoded as JPEG; choose png");
  }
  if (jpeg) return EncodeJpeg(image, quality);
  if (type == "png") return EncodePng(image);
  throw Error(ErrorCode::kUsage,
              Join("images cannot be encoded as '", EscapeControl(type), "'; choose jpg or png"));
}

}  // namespace trainer
