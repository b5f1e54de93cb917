#include "import/constant.h"

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kMaxImportAxes = 32;
constexpr int64_t kMaxElements = int64_t{1} << 48;

}  // namespace

int64_t CountOf(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

bool AreValidDims(std::span<const int64_t> dims) {
  if (dims.size() > kMaxImportAxes) return false;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    // An axis of length 0 counts as 1 here, so that the product of any subset of the axes fits.
    if (dim < 0 || __builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count) ||
        count > kMaxElements) {
      return false;
    }
  }
  return true;
}

std::string DimsText(std::span<const int64_t> dims) {
  if (dims.empty()) return "()";
  std::string text;
  for (const int64_t dim : dims) text += Join(text.empty() ? "" : "x", dim);
  return text;
}

Constant MakeFloats(Dims dims, std::vector<float> values) {
  Constant constant;
  constant.dims = std::move(dims);
  constant.floats = std::move(values);
  return constant;
}

Constant MakeInts(Dims dims, std::vector<int64_t> values) {
  Constant constant;
  constant.dims = std::move(dims);
  constant.is_float = false;
  constant.ints = std::move(values);
  return constant;
}

Constant SelectElements(const Constant& from, Dims dims,
                        const std::function<int64_t(int64_t)>& index) {
  const auto count = static_cast<size_t>(CountOf(dims));
  Constant to;
  to.dims = std::move(dims);
  to.is_float = from.is_float;
  if (from.is_float) {
    to.floats.resize(count);
    for (size_t i = 0; i < count; ++i) {
      to.floats[i] = from.floats[static_cast<size_t>(index(static_cast<int64_t>(i)))];
    }
  } else {
    to.ints.resize(count);
    for (size_t i = 0; i < count; ++i) {
      to.ints[i] = from.ints[static_cast<size_t>(index(static_cast<int64_t>(i)))];
    }
  }
  return to;
}

Constant SelectBySteps(const Constant& from, const Dims& dims, const Dims& steps, int64_t first) {
  Dims at(dims.size(), 0);
  int64_t next = first;
  return SelectElements(from, dims, [&](int64_t) {
    const int64_t index = next;
    for (size_t axis = dims.size(); axis-- > 0;) {
      next += steps[axis];
      if (++at[axis] < dims[axis]) break;
      next -= at[axis] * steps[axis];
      at[axis] = 0;
    }
    return index;
  });
}

}  // namespace trainer
