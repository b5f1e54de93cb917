#pragma once
// What the driver of a GPU tells of it while it works.

#include <cstddef>
#include <optional>

namespace trainer {

// Of one moment; what the driver does not tell is empty. The numbers are those of the whole GPU:
// other programs count, too.
struct GpuReading {
  std::optional<double> busy;         // share of the last second or less in which a kernel ran
  std::optional<double> memory_busy;  // the same, in which its memory was read or written
  std::optional<size_t> memory_bytes, memory_total;
  std::optional<double> watts, watts_limit, celsius;
  std::optional<double> clock_mhz, most_clock_mhz;  // of its multiprocessors
  // What holds its clock down just now.
  bool by_power = false;     // the limit of power, or the supply
  bool by_heat = false;      // too warm
  bool by_hardware = false;  // something else outside of the chip
};

class GpuMonitor {
 public:
  virtual ~GpuMonitor() = default;
  // A few milliseconds at most, as long as the GPU answers. One thread at a time. Never throws.
  virtual GpuReading Read() = 0;
};

}  // namespace trainer
