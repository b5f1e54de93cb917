#include "cpu/ops.h"
#include "trainer/backend/loops/cpu_loops.h"

namespace trainer::cpu {
namespace {

// Adds term(row, column) of each row to to[column], eight rows per pass over the columns, so that
// the sums are read and written once for eight rows, and eight lines of memory are read at once.
// Each sum adds the rows in ascending order.
template <class Term>
void AddRows(int64_t rows, int64_t begin, int64_t end, Term term, float* to) {
  using parallel_for_internal::Loop;
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    Loop(
        begin, end, [=](int64_t c) __attribute__((always_inline)) {
          const float half = to[c] + term(r, c) + term(r + 1, c) + term(r + 2, c) + term(r + 3, c);
          to[c] = half + term(r + 4, c) + term(r + 5, c) + term(r + 6, c) + term(r + 7, c);
        });
  }
  for (; r < rows; ++r) {
    Loop(
        begin, end, [=](int64_t c) __attribute__((always_inline)) { to[c] += term(r, c); });
  }
}

// Sums channels that are neighbours: memory is (rows, columns), which is read in order.
template <class T>
void AddColumns(int64_t rows, int64_t columns, const T* x, const T* times, float* to) {
  const int64_t work = times == nullptr ? 1 << 18 : 1 << 17;
  const int64_t grain = std::max<int64_t>(16, work / std::max<int64_t>(rows, 1));
  const auto element = [=](int64_t r, int64_t c) __attribute__((always_inline)) {
    return Load(x[r * columns + c]);
  };
  const auto product = [=](int64_t r, int64_t c) __attribute__((always_inline)) {
    return Load(x[r * columns + c]) * Load(times[r * columns + c]);
  };
  ParallelRanges(columns, grain, [&](int64_t begin, int64_t end) {
    if (times == nullptr) {
      AddRows(rows, begin, end, element, to);
    } else {
      AddRows(rows, begin, end, product, to);
    }
  });
}

// Row functor that sums the elements of one channel.
template <class T>
struct ChannelRow {
  const T *x, *times;
  float* to;
  int64_t channels, inner;

  HD void operator()(const CpuRow& row) const {
    const float sum = row.Sum([&](int64_t i) {
      const int64_t at = (i / inner * channels + row.index) * inner + i % inner;
      return times == nullptr ? Load(x[at]) : Load(x[at]) * Load(times[at]);
    });
    to[row.index] += sum;
  }
};

}  // namespace

void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x, const ConstTensor* times,
                    float* to) {
  DispatchCpuDtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* const by = times == nullptr ? nullptr : times->As<T>();
    if (desc.inner == 1) return AddColumns(desc.outer, desc.channels, x.As<T>(), by, to);
    CpuRows(desc.channels, desc.outer * desc.inner,
            ChannelRow<T>{x.As<T>(), by, to, desc.channels, desc.inner});
  });
}

}  // namespace trainer::cpu
