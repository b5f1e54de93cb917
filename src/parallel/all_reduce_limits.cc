#include "trainer/parallel/all_reduce_limits.h"

#include <algorithm>
#include <cmath>

namespace trainer {

size_t BucketBytes(const AllReduceSpeed& speed) {
  constexpr double kUnit = 65536, kMost = 64.0 * 1024 * 1024;
  const double bytes = 8 * speed.seconds * speed.bytes_per_second;
  return static_cast<size_t>(std::clamp(std::ceil(bytes / kUnit) * kUnit, kUnit, kMost));
}

}  // namespace trainer
