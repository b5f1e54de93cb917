#pragma once
// What decides how large a bucket is: the speed of sums here (see exchange_rules.h).

#include <cstddef>
#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/parallel/exchange_rules.h"

namespace trainer {

// All ranks call it together; rank 0's clock counts.
ExchangeSpeed MeasureExchange(Communicator& group);

// Latency is then an eighth of a bucket's time, within 64 KiB and 64 MiB. Multiples of 64 KiB.
size_t BucketBytes(const ExchangeSpeed& speed);

// "latency 2.1 us, 9.3 GB/s"
std::string Describe(const ExchangeSpeed& speed);
// "256 KiB", "25 MiB"
std::string DescribeBytes(size_t bytes);

}  // namespace trainer
