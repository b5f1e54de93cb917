#include "codecs.h"

#include <cstring>
#include <utility>

#include "trainer/base/each_cpu.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// A row of interleaved bytes to three planes.
TRAINER_FOR_EACH_CPU("avx2")  // byte shuffles
void SplitThree(const uint8_t* __restrict in, int width, int64_t plane, uint8_t* __restrict out) {
  uint8_t* __restrict const second = out + plane;
  uint8_t* __restrict const third = out + 2 * plane;
  for (int x = 0; x < width; ++x) {
    out[x] = in[3 * x];
    second[x] = in[3 * x + 1];
    third[x] = in[3 * x + 2];
  }
}

// Turns the numbers of an image that now has the shape of `to`. They were `from`.
template <class T>
void Turn(int n, const Image& to, int old_height, int old_width, const std::vector<T>& from,
          std::vector<T>* numbers) {
  const bool swap = n >= 5, flip_x = n == 2 || n == 3 || n == 7 || n == 8;
  const bool flip_y = n == 3 || n == 4 || n == 6 || n == 7;
  T* out = numbers->data();
  for (int c = 0; c < to.channels && !from.empty(); ++c) {
    const T* const plane = from.data() + c * to.Plane();
    for (int y = 0; y < to.height; ++y) {
      for (int x = 0; x < to.width; ++x) {
        const int column = swap ? y : x, row = swap ? x : y;
        const int64_t in_row = flip_y ? old_height - 1 - row : row;
        *out++ = plane[in_row * old_width + (flip_x ? old_width - 1 - column : column)];
      }
    }
  }
}

}  // namespace

void Fail16Bits() {
  throw ImageError(
      "has 16 bits per channel; set force_color or force_gray to use its upper 8 bits, or convert "
      "it");
}

void TurnUpright(int n, Image* image) {
  if (n == 1) return;
  const Image from = *image;
  if (n >= 5) std::swap(image->height, image->width);
  Turn(n, *image, from.height, from.width, from.pixels, &image->pixels);
  Turn(n, *image, from.height, from.width, from.floats, &image->floats);
}

void CheckSize(int64_t height, int64_t width) {
  if (height < 1 || width < 1) {
    throw ImageError(
        Join("claims to have ", width, "x", height, " pixels; there must be at least one"));
  }
  if (height > kMaxPixels / width) {
    throw ImageError(Join("claims to have ", width, "x", height, " pixels; at most ", kMaxPixels,
                          " are allowed: scale it down"));
  }
}

void AllocateImage(int channels, int height, int width, ColorMode colors, Image* image) {
  image->channels = colors == ColorMode::kAsStored ? channels : colors == ColorMode::kColor ? 3 : 1;
  image->height = height;
  image->width = width;
  image->pixels.resize(static_cast<size_t>(image->Plane()) * static_cast<size_t>(image->channels));
}

void StoreRow(const uint8_t* bytes, int channels, ColorMode colors, int y, Image* image) noexcept {
  const int width = image->width;
  uint8_t* out = image->pixels.data() + int64_t{y} * width;
  if (channels == 3 && image->channels == 3) return SplitThree(bytes, width, image->Plane(), out);
  if (colors == ColorMode::kGray && channels >= 3) {
    for (int x = 0; x < width; ++x, bytes += channels)
      out[x] = GrayOf(bytes[0], bytes[1], bytes[2]);
    return;
  }
  for (int c = 0; c < image->channels; ++c, out += image->Plane()) {
    const uint8_t* const from = bytes + (channels == 1 ? 0 : c);
    for (int x = 0; x < width; ++x) out[x] = from[int64_t{x} * channels];
  }
}

void FromInterleaved16(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                       Image* image) {
  AllocateImage(channels, height, width, colors, image);
  image->floats.resize(image->pixels.size());
  image->pixels.clear();
  const int64_t plane = image->Plane();
  for (int64_t at = 0; at < plane; ++at, bytes += 2 * channels) {
    const auto value = [&](int c) {
      uint16_t number = 0;
      std::memcpy(&number, bytes + 2 * c, sizeof number);
      return static_cast<float>(number) / kUnitOf16Bits;
    };
    if (colors == ColorMode::kGray && channels >= 3) {
      image->floats[static_cast<size_t>(at)] =
          0.114f * value(0) + 0.587f * value(1) + 0.299f * value(2);
      continue;
    }
    for (int c = 0; c < image->channels; ++c) {
      image->floats[static_cast<size_t>(c * plane + at)] = value(channels == 1 ? 0 : c);
    }
  }
}

}  // namespace trainer
