#pragma once
// Affine maps of images of bytes.

#include <cstdint>
#include <vector>

#include "trainer/input/augment.h"

namespace trainer {

// Maps point (x, y) of the new image to point (xx x + xy y + x0, yx x + yy y + y0) of the old one.
// The first pixel of an image covers the points from (0, 0) to (1, 1).
struct AffineMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

// What a map does to an image: it shears, resizes, rotates clockwise and shifts, in this order.
// Angles are in degrees, shifts in pixels.
struct AffineChange {
  double degrees = 0, shift_x = 0, shift_y = 0;
  double scale = 1;
  double shear_x = 0, shear_y = 0;
};

// Returns the map of a change about the middle of an image, as torchvision's functional.affine.
AffineMap MapOf(const AffineChange& change, int64_t height, int64_t width);

// How WarpAffine computes pixels.
struct WarpStyle {
  bool bilinear = false;      // else the nearest pixel
  std::vector<uint8_t> fill;  // outside the old image: nothing (0), one, or one per channel
};

// Replaces each pixel by the old image's at the point to which the map leads. Coordinates have 16
// fractional bits, so the result does not depend on the processor. With the nearest pixel it equals
// Pillow's bit for bit; with bilinear pixels it is within one level of Pillow's.
void WarpAffine(const AffineMap& map, const WarpStyle& style, const PixelSpan& part);

}  // namespace trainer
