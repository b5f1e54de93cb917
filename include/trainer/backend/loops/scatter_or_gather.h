#pragma once
// Sums that share terms, e.g. gradients of pixels that several windows cover.

#include <algorithm>

#include "trainer/backend/loops/map_rows.h"

namespace trainer {

// Computes such sums in one of two ways, which must give the same result. scatter(begin, end) adds
// all terms, in order, to the elements of [begin, end) of each sum: the least work, but only `n`
// threads can share it, and it is `work` operations for each. gather(row) finds the terms of one of
// `rows` rows of `length` elements and adds them in the same order. A CPU scatters, a GPU gathers.
template <class Scatter, class Gather>
void ScatterOrGather(const Device& device, int64_t n, int64_t work, const Scatter& scatter,
                     int64_t rows, int64_t length, const Gather& gather) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) return MapRows(device, rows, length, gather);
#endif
  (void)device;
  (void)rows;
  (void)length;
  (void)gather;
  // A CPU's ranges are at least one cache line of floats long.
  ParallelRanges(n, std::max<int64_t>(16, MinChunk(work)), scatter);
}

}  // namespace trainer
