#pragma once
// Changes of an image's bytes that equal Pillow's bit for bit, named as torchvision's operations.
// The functions of Pillow that compute the same are in brackets.

#include "trainer/input/augment.h"

namespace trainer {

void FlipRows(const PixelSpan& part);  // top to bottom (FLIP_TOP_BOTTOM)

// Each blends the image with another one: other + factor * (image - other), cut off to a byte.
void ByteBrightness(float factor, const PixelSpan& part);  // black (ImageEnhance.Brightness)
void ByteContrast(float factor, const PixelSpan& part);    // its mean grey (ImageEnhance.Contrast)
void ByteColor(float factor, const PixelSpan& part);       // its greys (ImageEnhance.Color)
void Sharpness(float factor, const PixelSpan& part);  // a smooth image (ImageEnhance.Sharpness)

// Keeps this number of upper bits (ImageOps.posterize).
void Posterize(int bits, const PixelSpan& part);
// Inverts the bytes that are not below the threshold (ImageOps.solarize).
void Solarize(float threshold, const PixelSpan& part);
// Stretches the values of each channel to 0 to 255 (ImageOps.autocontrast).
void AutoContrast(const PixelSpan& part);
// Makes all values of each channel about equally frequent (ImageOps.equalize).
void Equalize(const PixelSpan& part);

}  // namespace trainer
