#pragma once

#include <stdexcept>

#include "trainer/image/image.h"

namespace trainer {

// Why a picture cannot be used, as the end of a sentence: "is cut short".
struct ImageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `choose` may be null: the whole picture.
void DecodeJpeg(std::string_view bytes, ColorMode colors, const CropChooser* choose, Image* image,
                DecodedRegion* held);
// Returns whether bits were lost.
bool DecodePng(std::string_view bytes, ColorMode colors, BitDepth depth, Image* image);
void DecodeNetpbm(std::string_view bytes, ColorMode colors, Image* image);

// Refuses no pixels and more than kMaxPixels.
void CheckSize(int64_t height, int64_t width);

// Makes room for a picture of this size, whose file has so many channels.
void AllocateImage(int channels, int height, int width, ColorMode colors, Image* image);

// Fills row `y` of an allocated image from interleaved bytes. One channel may become three.
void StoreRow(const uint8_t* bytes, int channels, ColorMode colors, int y, Image* image) noexcept;

// Fills `image` from rows of `channels` interleaved bytes.
void FromInterleaved(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                     Image* image);

// Does the same for big-endian 16-bit values, to `floats`.
void FromInterleaved16(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                       Image* image);

// 0.299 R + 0.587 G + 0.114 B, rounded; in units of 2^-14.
inline uint8_t GrayOf(int blue, int green, int red) {
  return static_cast<uint8_t>((blue * 1868 + green * 9617 + red * 4899 + (1 << 13)) >> 14);
}

}  // namespace trainer
