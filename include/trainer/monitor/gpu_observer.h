#pragma once
// Watches the GPU of a run: what its driver reports at each display, and why the GPU idles.

#include <chrono>
#include <memory>
#include <string>

#include "trainer/base/process/gpu_reading.h"
#include "trainer/monitor/observer.h"

namespace trainer {

// A reading of the GPU, and how the run spent the time between two displays, as fractions of it.
struct GpuUtilization {
  GpuReading gpu;
  double data_wait = 0;      // the training thread waited for batches
  double exchange_wait = 0;  // it waited for the all-reduce with other ranks
  double cores_busy = 0;     // of the time of all cores that the process may use
  double iteration_seconds = 0;
  int cores = 1;
};

// Returns why the GPU computes less than it could, and what to do about it; "" if it is busy at
// full speed or if the driver does not report that. The reasons are tried in this order: a reduced
// clock, waiting for data, waiting for other ranks, too few cores, short kernels.
std::string DiagnoseGpu(const GpuUtilization& work);

// Makes an observer that reads the GPU at displays, at most once in `pace`, in its own thread,
// because a reading may take long. At the next display it passes the GpuReport to `told`. If two
// readings in a row show a problem, it also passes a note, at most every ten minutes. `told` must
// outlive the observer and should have it as its first member: the report belongs to the previous
// display, or in OnEnd to the last one.
std::unique_ptr<TrainingObserver> MakeGpuObserver(
    std::unique_ptr<GpuMonitor> monitor, TrainingObserver& told,
    std::chrono::milliseconds pace = std::chrono::milliseconds(1000));

}  // namespace trainer
