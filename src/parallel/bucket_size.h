#pragma once
// How large a sum should be for its latency to matter little.

#include <cstddef>
#include <string>

#include "trainer/base/replica_group.h"

namespace trainer {

struct ExchangeSpeed {
  double seconds = 0;           // of a sum of one number
  double bytes_per_second = 0;  // of gradients, in a sum of 1 MiB
};

// All ranks call it together; rank 0's clock counts.
ExchangeSpeed MeasureExchange(ReplicaGroup& group);

// Latency is then an eighth of a bucket's time, within 64 KiB and 64 MiB. Multiples of 64 KiB.
size_t BucketBytes(const ExchangeSpeed& speed);

// "latency 2.1 us, 9.3 GB/s"
std::string Describe(const ExchangeSpeed& speed);
// "256 KiB", "25 MiB"
std::string DescribeBytes(size_t bytes);

}  // namespace trainer
