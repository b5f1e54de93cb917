#pragma once
// Measurements that the driver of a GPU reports while the GPU works.

#include <cstddef>
#include <optional>

namespace trainer {

// The measurements of one moment. A value that the driver does not report is empty. The numbers
// count the whole GPU, so they include other programs.
struct GpuReading {
  std::optional<double> busy;         // share of the last second or less in which a kernel ran
  std::optional<double> memory_busy;  // the same, in which its memory was read or written
  std::optional<size_t> memory_bytes, memory_total;
  std::optional<double> watts, watts_limit, celsius;
  std::optional<double> joules;                     // since the driver was loaded
  std::optional<double> clock_mhz, most_clock_mhz;  // of its multiprocessors
  // The reasons that limit its clock at this moment.
  bool by_power = false;     // the limit of power, or the supply
  bool by_heat = false;      // too warm
  bool by_hardware = false;  // something else outside of the chip
};

class GpuMonitor {
 public:
  virtual ~GpuMonitor() = default;
  // Takes at most a few milliseconds, as long as the GPU answers. Only one thread may call it at a
  // time. Never throws.
  virtual GpuReading Read() = 0;
};

}  // namespace trainer
