#pragma once
// Rows in Y, Cb and Cr, as JPEG files store pictures, to rows of pixels: bit for bit what
// libjpeg-turbo makes of them ("fancy upsampling" and its colours).
//
// All loops go in whole blocks of kYccBlock bytes: what they read and write of the rows of Y, Cb
// and Cr must be there up to the next multiple of it. What lies behind the last sample is of no
// account.

#include <cstdint>

namespace trainer {

inline constexpr int kYccBlock = 32;

// `count` samples that stand for two columns each, to 2 * count: 3/4 of a sample and 1/4 of its
// neighbour on that side, rounded down on the left and up on the right; at the ends the sample
// itself. Writes `in`[-1] and `in`[count].
void UpsampleAcross(uint8_t* in, int count, uint16_t* out);

// The same of samples that stand for two rows, too: 9/16, 3/16, 3/16 and 1/16. `near` is the row
// that the wanted one lies in, `far` that row's neighbour on the wanted one's side, or `near`
// itself. `columns`: scratch for indices from -1 on, up to the block behind `count`.
void UpsampleBoth(const uint8_t* near, const uint8_t* far, int count, uint16_t* columns,
                  uint16_t* out);

// R = Y + 1.402 (Cr - 128), G = Y - 0.344 (Cb - 128) - 0.714 (Cr - 128), B = Y + 1.772 (Cb - 128),
// in units of 2^-16, rounded, from 0 to 255 (JFIF 1.02, section 7). Writes `width` bytes of each.
void YccToBgr(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int width, uint8_t* blue,
              uint8_t* green, uint8_t* red);

}  // namespace trainer
