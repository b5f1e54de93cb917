#pragma once
// Loops over ranges, for work that one thread must do in order within each element.

#include <algorithm>

#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/map.h"

namespace trainer {

namespace map_internal {

// Calls f for the range of one element.
template <class F>
struct RangeOfOne {
  F f;
  HD void operator()(int64_t i) const { f(i, i + 1); }
};

}  // namespace map_internal

// Calls f(begin, end) on disjoint ranges that cover [0, n). Each element is processed by one
// thread, always in the same order. `work` is the number of operations per element. A GPU gives
// each element a thread; a CPU's ranges are at least one cache line of floats long.
template <class F>
void ForEachRange(const Device& device, int64_t n, int64_t work, const F& f) {
  if (device.kind() != DeviceKind::kCpu) return ForEach(device, n, map_internal::RangeOfOne<F>{f});
  ParallelRanges(n, std::max<int64_t>(16, MinChunk(work)),
                 [&](int64_t begin, int64_t end) { f(begin, end); });
}

}  // namespace trainer
