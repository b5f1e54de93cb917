#pragma once
// CPU loops, split over a team of threads and compiled for several instruction sets.

#include <algorithm>
#include <cstdint>

#include "trainer/base/thread/thread_team.h"

namespace trainer {

enum class CpuIsa { kBase, kAvx2, kAvx512 };

// Returns the best instruction set that this processor has and that the loops are compiled for.
CpuIsa DetectCpuIsa();
// Returns whether this processor has instructions that multiply bf16.
bool HasBf16Instructions();

// The number of parts of a thread's work, so that other threads can take some of them over.
inline constexpr int64_t kPartsPerThread = 8;

namespace parallel_for_internal {

// For fewer elements, starting the team costs more time than it saves (about 4 us of work).
inline constexpr int64_t kGrain = 16384;
// A part has at least this number of grains: smaller ones take more time to hand out than they
// save.
inline constexpr int64_t kGrainsPerPart = 4;

// A loop body inlined into a function inherits that function's instruction set.
template <class Body>
__attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))) void LoopAvx512(int64_t begin,
                                                                                  int64_t end,
                                                                                  Body body) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) body(i);
}

template <class Body>
__attribute__((target("arch=x86-64-v3"))) void LoopAvx2(int64_t begin, int64_t end, Body body) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) body(i);
}

template <class Body>
void LoopBase(int64_t begin, int64_t end, Body body) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) body(i);
}

// Calls body(i) for each i of [begin, end) on this thread, in the loop for the best instruction set
// of the processor.
template <class Body>
void Loop(int64_t begin, int64_t end, Body body) {
  static const CpuIsa isa = DetectCpuIsa();
  if (isa == CpuIsa::kAvx512) return LoopAvx512(begin, end, body);
  if (isa == CpuIsa::kAvx2) return LoopAvx2(begin, end, body);
  LoopBase(begin, end, body);
}

}  // namespace parallel_for_internal

// Calls range(begin, end) on disjoint parts of [0, n), or once for all if n is small. If n is
// large, there are several parts per thread, so that a slow thread does not hold up the others. The
// partition depends only on n and the number of threads, so results repeat. `range` must not throw.
template <class Range>
void ParallelRanges(int64_t n, int64_t grain, const Range& range) {
  const int team = InParallelRegion() ? 1 : TeamSize();
  const int64_t grains = (n + grain - 1) / std::max<int64_t>(grain, 1);
  const int64_t many =
      std::min<int64_t>(team * kPartsPerThread, grains / parallel_for_internal::kGrainsPerPart);
  const int parts = static_cast<int>(std::max(std::min<int64_t>(team, grains), many));
  if (team == 1 || parts <= 1) {
    if (n > 0) range(int64_t{0}, n);
    return;
  }
  RunParts(parts, [&](int part) { range(n * part / parts, n * (part + 1) / parts); });
}

// Calls body(i) for each i of [0, n). The calls must not depend on each other, because the loop is
// vectorised under this assumption. A body may read and write element i of one array.
template <class Body>
void ParallelFor(int64_t n, Body body, int64_t grain = parallel_for_internal::kGrain) {
  ParallelRanges(
      n, grain, [&](int64_t begin, int64_t end) { parallel_for_internal::Loop(begin, end, body); });
}

// Runs a body that gains nothing from wider vectors: the loop is compiled once instead of once for
// each instruction set.
template <class Body>
void ParallelForBase(int64_t n, Body body, int64_t grain = parallel_for_internal::kGrain) {
  ParallelRanges(n, grain, [&](int64_t begin, int64_t end) {
    parallel_for_internal::LoopBase(begin, end, body);
  });
}

}  // namespace trainer
