#pragma once
// Helpers for loops over rows on the CPU: how many rows one thread gets, and the sum and maximum of
// a row.

#include <cfloat>

#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/host_device.h"

// nvcc hands GCC's pragmas on to g++, but warns that it does not know them.
#ifdef __NVCC__
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1675
#endif

namespace trainer {

// Returns how many pieces of `work` elements each justify a thread of their own.
inline int64_t MinChunk(int64_t work) {
  return std::max<int64_t>(1, parallel_for_internal::kGrain / std::max<int64_t>(1, work));
}

// Returns how many pieces of `bytes` bytes that are only copied justify a thread of their own.
inline int64_t GrainOfBytes(int64_t bytes) {
  return std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, bytes));
}

// One row of `length` elements on the CPU. Sums and maxima run in 16 lanes, which are then combined
// in a fixed order.
struct CpuRow {
  int64_t index, length;

  // Returns the sum of f(i) over the row.
  template <class F>
  HD float Sum(const F& f) const {
    float lane[16] = {};
    int64_t i = 0;
    for (; i + 16 <= length; i += 16) {
      // g++ 12 must not unroll the lanes before it vectorises them. Otherwise, for AVX2, it loads
      // what `f` reads under a condition, as in `a[i] == 1 && b[i] > 0`, for both halves of the
      // lanes under the mask of the first half, and the sum is wrong.
#pragma GCC unroll 1
      for (int l = 0; l < 16; ++l) lane[l] += f(i + l);
    }
    for (int l = 0; i < length; ++i, ++l) lane[l] += f(i);
    for (int half = 8; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    }
    return lane[0];
  }

  // Returns the maximum of f(i) over the row; -FLT_MAX for an empty row. Ignores NaN.
  template <class F>
  HD float Max(const F& f) const {
    float lane[16];
    for (int l = 0; l < 16; ++l) lane[l] = -FLT_MAX;
    int64_t i = 0;
    for (; i + 16 <= length; i += 16) {
      for (int l = 0; l < 16; ++l) {
        const float x = f(i + l);
        lane[l] = x > lane[l] ? x : lane[l];
      }
    }
    for (int l = 0; i < length; ++i, ++l) {
      const float x = f(i);
      lane[l] = x > lane[l] ? x : lane[l];
    }
    float best = lane[0];
    for (int l = 1; l < 16; ++l) best = lane[l] > best ? lane[l] : best;
    return best;
  }

  // Calls f(i) for each element i of the row.
  template <class F>
  HD void ForEach(const F& f) const {
    for (int64_t i = 0; i < length; ++i) f(i);
  }

  // Calls store(i, value(i)) for each element i of the row. A GPU computes some values before it
  // stores the first one, so value(i) must not depend on what `store` writes for other elements.
  template <class F, class G>
  HD void StoreEach(const F& value, const G& store) const {
    for (int64_t i = 0; i < length; ++i) store(i, value(i));
  }

  // Runs f once for the row, for example to store its result.
  template <class F>
  HD void Once(const F& f) const {
    f();
  }
};

// Calls f(row) for each row of [0, rows). Rows must not depend on each other.
template <class F>
void CpuRows(int64_t rows, int64_t length, F f) {
  ParallelFor(
      rows,
      [=](int64_t row) __attribute__((always_inline)) {
        f(CpuRow{row, length});
      },
      MinChunk(4 * length));
}

}  // namespace trainer

#ifdef __NVCC__
#pragma nv_diagnostic pop
#endif
