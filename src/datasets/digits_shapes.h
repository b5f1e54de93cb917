#pragma once
// The ways of writing the ten digits that DrawDigit starts from.

#include <span>

namespace trainer {

struct PenPoint {
  double x = 0, y = 0;  // in a unit square, y downwards
};

// A line drawn without lifting the pen and without a corner: a smooth curve through the points.
struct PenStroke {
  std::span<const PenPoint> points;
};

struct DigitShape {
  std::span<const PenStroke> strokes;
};

// The shapes of digit 0 to 9, at least three each.
std::span<const DigitShape> ShapesOf(int digit);

}  // namespace trainer
