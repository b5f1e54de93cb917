#pragma once
// One decoder per file format, and what they share.

#include <stdexcept>
#include <string>

#include "trainer/image/image.h"

namespace trainer {

// Why a picture cannot be used, as the end of a sentence: "is cut short".
struct BadImage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// As DecodePart; `choose` may be null: the whole picture.
void DecodeJpeg(std::string_view bytes, Colors colors, const ChoosePart* choose, Image* image,
                HeldPart* held);
// Returns whether bits were lost.
bool DecodePng(std::string_view bytes, Colors colors, BitDepth depth, Image* image);
void DecodeNetpbm(std::string_view bytes, Colors colors, Image* image);

// Refuses no pixels and more than kMaxPixels.
void CheckSize(int64_t height, int64_t width);

// Makes room for a picture of this size, whose file has so many channels.
void SetForm(int channels, int height, int width, Colors colors, Image* image);

// Fills row `y` of an image that SetForm made, from interleaved bytes. One channel becomes three
// where a colour picture is wanted.
void PutRow(const uint8_t* bytes, int channels, Colors colors, int y, Image* image) noexcept;

// Fills `image` from rows of `channels` interleaved bytes.
void FromInterleaved(const uint8_t* bytes, int channels, int height, int width, Colors colors,
                     Image* image);

// The same of big-endian values of 16 bits, to `floats`.
void FromInterleaved16(const uint8_t* bytes, int channels, int height, int width, Colors colors,
                       Image* image);

// 0.299 R + 0.587 G + 0.114 B, rounded; in units of 2^-14.
inline uint8_t GrayOf(int blue, int green, int red) {
  return static_cast<uint8_t>((blue * 1868 + green * 9617 + red * 4899 + (1 << 13)) >> 14);
}

}  // namespace trainer
