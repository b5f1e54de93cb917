#pragma once
// Tunes the size of a gradient bucket by the measured speed of all-reduces (see
// all_reduce_limits.h).

#include <cstddef>
#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {

// Measures the latency (the fastest of 10 all-reduces of one number) and the bandwidth (the fastest
// of 3 of 1 MiB of gradients). Collective; all ranks get rank 0's measurement.
AllReduceSpeed MeasureAllReduce(Communicator& group);

// Returns, for example, "latency 2.1 us, 9.3 GB/s".
std::string Describe(const AllReduceSpeed& speed);
// Returns, for example, "256 KiB" or "25 MiB".
std::string DescribeBytes(size_t bytes);

}  // namespace trainer
