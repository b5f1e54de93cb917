#include "bucket_size.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "trainer/base/thread/spin.h"
#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {
namespace {

// Returns the seconds of the fastest of `rounds` calls.
template <class F>
double FastestSeconds(int rounds, const F& call) {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < rounds; ++i) {
    const int64_t begin = MonotonicNs();
    call();
    best = std::min(best, MonotonicNs() - begin);
  }
  return static_cast<double>(std::max<int64_t>(1, best)) * 1e-9;
}

// Formats one number with a format of printf.
std::string FormatOneNumber(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

AllReduceSpeed MeasureAllReduce(Communicator& group) {
  constexpr size_t kBytes = kSpeedBytes, kAlignment = 64;
  float one = 0;
  const double latency = FastestSeconds(10, [&] { group.AllReduce({&one, 1}); });
  std::pmr::memory_resource* const memory = group.gradient_memory() == nullptr
                                                ? std::pmr::get_default_resource()
                                                : group.gradient_memory();
  auto* const values = static_cast<float*>(memory->allocate(kBytes, kAlignment));
  std::fill_n(values, kBytes / sizeof(float), 0.0f);
  const double time = FastestSeconds(3, [&] { group.AllReduce({values, kBytes / sizeof(float)}); });
  memory->deallocate(values, kBytes, kAlignment);
  float measured[] = {static_cast<float>(latency), static_cast<float>(kBytes / time)};
  group.Broadcast(measured);
  return {measured[0], measured[1]};
}

std::string Describe(const AllReduceSpeed& speed) {
  return FormatOneNumber("latency %.3g us, ", speed.seconds * 1e6) +
         FormatOneNumber("%.3g GB/s", speed.bytes_per_second * 1e-9);
}

std::string DescribeBytes(size_t bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < 1 << 20 ? FormatOneNumber("%.3g KiB", value / 1024)
                         : FormatOneNumber("%.3g MiB", value / 1024 / 1024);
}

}  // namespace trainer
