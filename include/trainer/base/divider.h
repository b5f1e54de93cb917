#pragma once
// Division by a number that stays the same for many divisions.

#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

// Divides numbers of type Number by `by`, which must be at least 1. A divider multiplies by the
// reciprocal, which takes about a fifth of the instructions of a division on a GPU. Wide is a type
// with twice the bits of Number.
template <class Number, class Wide>
class DividerOf {
 public:
  DividerOf() = default;
  HD explicit DividerOf(Number by) : by_(by), reciprocal_(kMost / by) {}

  HD Number by() const { return by_; }
  // Returns x / by.
  HD Number Quotient(Number x) const {
    // The reciprocal is up to 1 too small, so the product is the quotient or one less.
    const auto quotient = static_cast<Number>(Wide{x} * reciprocal_ >> 8 * sizeof(Number));
    return quotient + (x - quotient * by_ >= by_ ? 1 : 0);
  }

 private:
  static constexpr Number kMost = ~Number{0};

  Number by_ = 1, reciprocal_ = kMost;  // kMost / by
};

using Divider = DividerOf<uint32_t, uint64_t>;
__extension__ typedef unsigned __int128 Unsigned128;
using LongDivider = DividerOf<uint64_t, Unsigned128>;

// Returns the index of element `at` after matrices of `rows` and `columns`, which follow each
// other, were transposed: element (m, row, column) becomes (m, column, row).
template <class Number, class Wide>
HD Number TransposedIndex(Number at, const DividerOf<Number, Wide>& rows,
                          const DividerOf<Number, Wide>& columns) {
  const Number rest = columns.Quotient(at), column = at - rest * columns.by();
  const Number m = rows.Quotient(rest), row = rest - m * rows.by();
  return (m * columns.by() + column) * rows.by() + row;
}

}  // namespace trainer
