#pragma once
// Measures the energy that a rank's host and GPU use during a run.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/process/gpu_reading.h"
#include "trainer/base/process/rapl_meter.h"

namespace trainer {

// The parts of a host that one rank measures. Only one rank of a host should measure the
// processors.
struct EnergySources {
  std::string host;
  std::optional<std::string> rapl_folder;  // of the processors' counters; empty: not measured
  std::string gpu;                         // "GPU 0000:1b:00.0"; "": none
  std::unique_ptr<GpuMonitor> gpu_monitor;
  std::string gpu_problem;                                    // why `gpu` has no monitor
  std::chrono::milliseconds pace = std::chrono::seconds(10);  // between readings of the processors
};

// Counts from its construction on. A thread reads the processors' counters, because they start over
// after some minutes; a GPU's counter does not, and is read by Read alone. Use from one thread.
class EnergyMeter {
 public:
  explicit EnergyMeter(EnergySources sources);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Returns the energy that each part has used so far. Takes a few milliseconds.
  std::vector<EnergyTotal> Read();

 private:
  // Runs in the thread: updates the processors' counters until the destructor ends it.
  void Run();
  // Returns what the GPU has used since the construction.
  EnergyTotal ReadGpu();

  const EnergySources sources_;
  std::optional<RaplMeter> rapl_;     // guarded by mutex_
  std::optional<double> gpu_joules_;  // of the GPU's counter at the beginning
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace trainer
