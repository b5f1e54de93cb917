#pragma once
// Watches the GPU of a run: what its driver tells, at each display, and why it idles.

#include <chrono>
#include <memory>
#include <string>

#include "trainer/base/process/gpu_reading.h"
#include "trainer/monitor/observer.h"

namespace trainer {

// A reading of the GPU and the times of the run, as fractions of the time between two displays.
struct GpuUtilization {
  GpuReading gpu;
  double data_wait = 0;      // the training thread waited for batches
  double exchange_wait = 0;  // it waited for the all-reduce with other ranks
  double cores_busy = 0;     // of the time of all cores that the process may use
  double iteration_seconds = 0;
  int cores = 1;
};

// Why the GPU computes less than it could, and what to do; "" where it is busy at full speed.
std::string DiagnoseGpu(const GpuUtilization& work);

// Reads the GPU, which may take its time, at displays, at most once in `pace`, on a
// thread of its own, and tells `told` at the next one: GpuReports, and a note where two readings in
// a row show the same trouble, every ten minutes at most. `told` outlives the observer, which is
// best its first member: what it tells is of the display before, and in OnEnd of the last one.
std::unique_ptr<TrainingObserver> MakeGpuObserver(
    std::unique_ptr<GpuMonitor> monitor, TrainingObserver& told,
    std::chrono::milliseconds pace = std::chrono::milliseconds(1000));

}  // namespace trainer
