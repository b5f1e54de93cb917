#pragma once
// Changes of an image's bytes that equal Pillow's bit for bit. The names are those of torchvision's
// operations; the functions of Pillow that compute the same are in brackets.

#include "trainer/input/augment.h"

namespace trainer {

void FlipRows(const PixelSpan& part);  // top to bottom (FLIP_TOP_BOTTOM)

// Each blends the image with another one: other + factor * (image - other), cut off to a byte.
void ByteBrightness(float factor, const PixelSpan& part);  // black (ImageEnhance.Brightness)
void ByteContrast(float factor, const PixelSpan& part);    // its mean grey (ImageEnhance.Contrast)
void ByteColor(float factor, const PixelSpan& part);       // its greys (ImageEnhance.Color)
void Sharpness(float factor, const PixelSpan& part);  // a smooth image (ImageEnhance.Sharpness)

void Posterize(int bits, const PixelSpan& part);        // keeps the upper bits (ImageOps.posterize)
void Solarize(float threshold, const PixelSpan& part);  // inverts from it on (ImageOps.solarize)
// Stretches the values of each channel to 0 to 255 (ImageOps.autocontrast).
void AutoContrast(const PixelSpan& part);
// Makes all values of each channel about equally frequent (ImageOps.equalize).
void Equalize(const PixelSpan& part);

}  // namespace trainer
