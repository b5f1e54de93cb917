#pragma once
// Tunes the size of a gradient bucket by the measured speed of all-reduces (see
// all_reduce_limits.h).

#include <cstddef>
#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {

// Collective; rank 0's measurement is used.
AllReduceSpeed MeasureAllReduce(Communicator& group);

// The size for which latency is an eighth of a bucket's time, within 64 KiB and 64 MiB, in
// multiples of 64 KiB.
size_t BucketBytes(const AllReduceSpeed& speed);

// "latency 2.1 us, 9.3 GB/s"
std::string Describe(const AllReduceSpeed& speed);
// "256 KiB", "25 MiB"
std::string DescribeBytes(size_t bytes);

}  // namespace trainer
