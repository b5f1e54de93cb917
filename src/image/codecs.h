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

// Losses of a decoding that the caller reports to the user.
struct DecodeNotes {
  bool lost_bits = false;   // the lower 8 of 16
  bool more_pages = false;  // only the first one was decoded
};
DecodeNotes DecodePng(std::string_view bytes, ColorMode colors, BitDepth depth, Image* image);
DecodeNotes DecodeTiff(std::string_view bytes, ColorMode colors, BitDepth depth, Image* image);
void DecodeNetpbm(std::string_view bytes, ColorMode colors, Image* image);

// Refuses an image with 16 bits per channel whose lower bits would be lost as stored.
[[noreturn]] void Fail16Bits();

// Turns an image upright that was taken with Exif orientation `n`, 1 to 8.
void TurnUpright(int n, Image* image);

// Refuses no pixels and more than kMaxPixels.
void CheckSize(int64_t height, int64_t width);

// Makes room for a picture of this size, whose file has so many channels.
void AllocateImage(int channels, int height, int width, ColorMode colors, Image* image);

// Fills row `y` of an allocated image from interleaved bytes. One channel may become three.
void StoreRow(const uint8_t* bytes, int channels, ColorMode colors, int y, Image* image) noexcept;

// One step of an 8-bit value in 16-bit units: 65535 / 255.
inline constexpr float kUnitOf16Bits = 257;

// Does the same as FromInterleaved for 16-bit numbers of this machine's byte order, to `floats`:
// see BitDepth.
void FromInterleaved16(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                       Image* image);

// 0.299 R + 0.587 G + 0.114 B, rounded; in units of 2^-14.
inline uint8_t GrayOf(int blue, int green, int red) {
  return static_cast<uint8_t>((blue * 1868 + green * 9617 + red * 4899 + (1 << 13)) >> 14);
}

}  // namespace trainer
