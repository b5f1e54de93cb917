#pragma once
// Tunes the size of a gradient bucket by the measured speed of all-reduces (see
// all_reduce_limits.h).

#include <cstddef>
#include <string>

#include "trainer/base/ranks/communicator.h"

namespace trainer {

struct AllReduceSpeed {
  double seconds = 0;           // for an all-reduce of one number
  double bytes_per_second = 0;  // for gradients, in an all-reduce of kSpeedBytes
};

// Measures the latency (the fastest of 10 all-reduces of one number) and the bandwidth (the fastest
// of 3 of 1 MiB of gradients). Collective; all ranks get rank 0's measurement.
AllReduceSpeed MeasureAllReduce(Communicator& group);

// Returns, for example, "latency 2.1 us, 9.3 GB/s".
std::string Describe(const AllReduceSpeed& speed);
// Returns, for example, "256 KiB" or "25 MiB".
std::string DescribeBytes(size_t bytes);

}  // namespace trainer
