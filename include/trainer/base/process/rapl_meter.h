#pragma once
// The energy that the processors and the memory of this host use, by the counters of RAPL.

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// The energy that one part of a host has used.
struct EnergyTotal {
  std::string host;     // "": the caller adds the host
  std::string name;     // "package-0", "dram of package-0", "GPU 0000:1b:00.0"
  double joules = 0;    // meaningless if there is a problem
  std::string problem;  // why the energy is not known; "": it is known
};

// Sums the counters of Linux's powercap interface: each processor package and its memory (dram).
// The zones core and uncore are part of a package. The zone psys contains the packages, so it does
// not count. The counters cover all programs of the host. Use from one thread at a time.
class RaplMeter {
 public:
  // Starts at the counters' present values. If they cannot be read, the totals say why.
  explicit RaplMeter(const std::string& folder = "/sys/class/powercap");

  // Adds what the counters have counted since the last call. Call it at least once a minute,
  // because a counter starts over after some minutes at full power. A counter that cannot be read
  // any more gets a problem.
  void Update();
  // Returns the sums up to the last Update; at least one element.
  const std::vector<EnergyTotal>& totals() const { return totals_; }
  // Returns whether a counter can be read.
  bool IsReadable() const;

 private:
  // A counter in a file, in microjoules.
  struct Counter {
    std::string file;
    uint64_t range = 0;  // the counter starts over after this value; 0: unknown
    uint64_t last = 0;
  };

  // Adds the counter in the folder `zone` and reads its first value.
  void AddCounter(const std::string& zone, const std::string& name);

  std::vector<Counter> counters_;
  std::vector<EnergyTotal> totals_;  // of each counter; or one with the problem of all
};

}  // namespace trainer
