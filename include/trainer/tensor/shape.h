#pragma once
// Shapes, and the one layout rule of the program.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "trainer/base/host_device.h"

namespace trainer {

// The lengths of a tensor's axes, outermost first. A shape without axes is a scalar (count 1).
//
// Layout rule: a shape of 4 axes is named (N, C, H, W) and stored as N, H, W, C; every other rank
// is row-major. Loops over all elements need not know the layout; code that addresses one axis uses
// AxisRows.
class Shape {
 public:
  static constexpr int kMaxAxes = 32;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Throws kConfig for more than 32 axes, a negative length or more than 2^48 elements.
  explicit Shape(std::span<const int64_t> dims);

  int Rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // Returns whether the shape has 4 axes and is therefore stored as N, H, W, C.
  bool IsImage() const { return rank_ == 4; }

  int64_t Count() const { return Count(0, rank_); }
  // Returns the product of the lengths of axes [from, rank).
  int64_t Count(int from) const { return Count(from, rank_); }
  // Returns the product of the lengths of axes [from, to); 1 for an empty range.
  int64_t Count(int from, int to) const;

  // Converts an axis that may be negative (counted from the end) to [0, rank). Returns -1 if it is
  // out of range.
  int CanonicalAxis(int axis) const;

  // Returns this shape with the length of one axis replaced.
  Shape With(int axis, int64_t length) const;
  // Returns this shape with axes [from, to) replaced by `dims`, which may have another number of
  // axes. Both functions throw as the constructor does.
  Shape Replace(int from, int to, std::span<const int64_t> dims) const;

  // Formats like Caffe: "64 20 24 24 (737280)"; a scalar is "(1)".
  std::string ToString() const;

  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxAxes> dims_{};
  int rank_ = 0;
};

// Describes where the rows of a tensor along one axis are in memory, such as the `length` channels
// of each of `count` pixels. `inner` is the distance of neighbouring elements of a row. Element i
// of row r is at
//   (r / inner) * length * inner + i * inner + r % inner.
// Rows are numbered in memory order of the other axes. For (N, C, H, W) along C this is the order
// n, h, w of a label tensor (N, 1, H, W) or (N, H, W).
struct Rows {
  int64_t count = 1, length = 1, inner = 1;

  // Returns the offset of element 0 of a row.
  HD int64_t Start(int64_t row) const { return (row / inner) * length * inner + row % inner; }
};

// Returns the rows along `axis`, which must be in [0, rank).
Rows AxisRows(const Shape& shape, int axis);

}  // namespace trainer
