#pragma once
// Register-blocked products for AVX-512 and AVX2, used by the segment convolutions and the own 1 x
// 1 products. The functions must be called only if HasWideLanes() (simd.h). The left operand is
// read through offsets, so that windows may overlap. Lengths are in floats; "wide" means padded
// with zeros to a multiple of 16, which fills whole vectors of both instruction sets. In
// ProductTiles, whole vectors of the processor suffice.

#include <cstdint>

#include "cpu/group_product.h"

namespace trainer::cpu {

// Splits [0, count) into near-equal parts of at most `most` and calls f(begin, end) for each. A
// part is a tile whose sums stay in registers.
template <class F>
void ForTiles(int64_t count, int64_t most, F f) {
  const int64_t parts = (count + most - 1) / most;
  for (int64_t part = 0; part < parts; ++part) {
    f(count * part / parts, count * (part + 1) / parts);
  }
}

// MultiplyPixels computes
//   y[p, j] = bias[j] + sum over t < taps of x[pixel[p] + tap[t]] * w[t, j]
// with w[t, j] at w + t * w_step + j and y[p, j] at y + p * y_pixel + j. `w` and `bias` (null for
// 0) are wide in j; y is written for j < columns only. With `add` the sum is added to y instead of
// the bias.
struct ProductTiles {
  const float* x;
  const int64_t *pixel, *tap;
  int64_t taps;
  const float* w;
  int64_t w_step;
  const float* bias;
  bool add = false;
  float* y;
  int64_t y_pixel, columns;
};
// Sets y[p, j] to the bias plus the sum over all taps of pixel p's window times column j of w, for
// `pixels` pixels. See ProductTiles.
void MultiplyPixels(const ProductTiles& t, int64_t pixels);

// DotPixels computes dot products, for few columns and taps in rows of `length` neighbours:
//   y[p, j] = bias[j] + sum over i < rows, k < length of x[pixel[p] + i * x_row + k] * w[i, j, k]
// with w[i, j, k] at w + (i * columns + j) * wide length + k.
struct DotTiles {
  const float* x;
  const int64_t* pixel;
  int64_t rows, x_row, length;
  const float* w;
  const float* bias;
  float* y;
  int64_t y_pixel, columns;
};
// Sets y[p, j] to the bias plus the dot product of pixel p's window with column j of w, for
// `pixels` pixels. Vectors run along the window. See DotTiles.
void DotPixels(const DotTiles& t, int64_t pixels);

// Returns how many of the last columns of a product with `rows` rows of `length` taps are cheaper
// as dot products: the columns that do not fill a vector, or 0.
int64_t TailColumns(int64_t columns, int64_t rows, int64_t length);

// `count` segments of `length` groups of `width` floats. Each starts `stride` groups after the
// previous one in the target, and `step` floats after it in the source.
struct OverlappingSegments {
  const float* from;
  int64_t step, count, length, stride, width;
};
// Adds the segments to `to`. Each group is read and written once, because a store of part of a
// vector followed by a load from there costs more than the rest of the work.
void AddOverlapping(const OverlappingSegments& t, float* to);

// One operand of a sum over positions (image, line, pixel).
struct Operand {
  const float* at;
  int64_t image, line, pixel;  // steps

  // Returns this operand with its start moved by `floats` floats.
  Operand Plus(int64_t floats) const { return {at + floats, image, line, pixel}; }
};
// AddOuterProducts computes
//   g[k, j] += sum over all positions p of left[p, k] * right[p, j]
// for k < length, j < columns, with g[k, j] at g + k * g_step + j, wide in j.
struct GradientTiles {
  Operand left, right;
  float* g;
  int64_t g_step;
  int64_t images, lines, pixels, length, columns;
};
// Adds to g[k, j] the sum over all positions of left[k] * right[j]. See GradientTiles.
void AddOuterProducts(const GradientTiles& t);

}  // namespace trainer::cpu
