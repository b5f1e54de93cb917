#include "trainer/tensor/shape.h"

#include <algorithm>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 48;

}  // namespace

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxAxes) {
    throw Error(ErrorCode::kConfig,
                Join("a shape of ", dims.size(), " axes; at most 32 are allowed"));
  }
  int64_t count = 1;
  for (const int64_t length : dims) {
    int64_t product = 0;
    if (length < 0 || __builtin_mul_overflow(count, length, &product) || product > kMaxElements) {
      std::string text;
      for (const int64_t dim : dims) text += Join(text.empty() ? "" : " x ", dim);
      throw Error(ErrorCode::kConfig,
                  Join("a blob of shape ", text,
                       length < 0 ? " has a negative axis" : " is larger than any memory"));
    }
    count = product;
    dims_[rank_++] = length;
  }
}

int64_t Shape::Count(int from, int to) const {
  int64_t count = 1;
  for (int axis = from; axis < to; ++axis) count *= dims_[axis];
  return count;
}

int Shape::CanonicalAxis(int axis) const {
  if (axis < -rank_ || axis >= rank_) return -1;
  return axis < 0 ? axis + rank_ : axis;
}

Shape Shape::With(int axis, int64_t length) const {
  const int64_t dims[] = {length};
  return Replace(axis, axis + 1, dims);
}

Shape Shape::Replace(int from, int to, std::span<const int64_t> dims) const {
  std::vector<int64_t> all(dims_.begin(), dims_.begin() + from);
  all.insert(all.end(), dims.begin(), dims.end());
  all.insert(all.end(), dims_.begin() + to, dims_.begin() + rank_);
  return Shape(all);
}

std::string Shape::ToString() const {
  std::string text;
  for (const int64_t length : dims()) text += Join(length, " ");
  return text + Join("(", Count(), ")");
}

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(dims(), other.dims());
}

Rows AxisRows(const Shape& shape, int axis) {
  Rows rows;
  rows.length = shape[axis];
  if (shape.IsImage()) {
    if (axis == 0) rows.inner = shape.Count(1);
    if (axis == 2) rows.inner = shape[3] * shape[1];
    if (axis == 3) rows.inner = shape[1];
  } else {
    rows.inner = shape.Count(axis + 1);
  }
  rows.count = rows.length == 0 ? 0 : shape.Count() / rows.length;
  return rows;
}

}  // namespace trainer
