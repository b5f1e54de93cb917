#pragma once
// The nets of a preflight check, and their memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "preflight/lints.h"
#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/net/net.h"
#include "trainer/optim/optimizer.h"
#include "trainer/run/device.h"
#include "trainer/run/preflight/preflight.h"

namespace trainer {

// One net of a run.
struct PreflightNet {
  std::string title;  // "training net", "test net #0"
  const NetSpec* spec = nullptr;
  NetOptions options;
  int64_t batches = 0;  // that the training or one test reads; 0: unknown
  int batches_per_iteration = 1;
  bool one_exact_pass = false;  // a test without test_iter
  bool tests_at_start = true;   // test_initialization
};

// A net that was planned without taking memory.
struct PlannedNet {
  bool good = false;
  size_t activations = 0;       // bytes, staging included
  size_t staging = 0;           // bytes of batches in transfer to a GPU
  std::vector<Buffer> largest;  // the largest activations
  std::vector<LabelReader> readers;
};

// The plans of all nets of a run, in the order of the PreflightNets, and the memory of the run.
struct PlannedNets {
  std::vector<PlannedNet> nets;
  MemoryEstimate memory;

  bool good() const;
};

// Plans all nets as a run builds them, and adds the errors of every layer to the report. Skips a
// net whose spec is null. `spec` and `rule` belong to the run whose training net is the first; both
// are null for a net without a run.
PlannedNets PlanNets(const std::vector<PreflightNet>& nets, const SolverSpec* spec,
                     const Optimizer* rule, const Device& device, PreflightReport* report);

// The device that a check computes on.
struct PreflightDevice {
  std::unique_ptr<Device> device;
  HostMemory gpu_memory;  // of a GPU
};

// Makes the chosen device. If it cannot be used, adds the error and makes the CPU device.
PreflightDevice MakePreflightDevice(const DeviceChoice& choice, Diagnostics* diagnostics);

// Compares the planned memory with the available memory, on the host and on a GPU. Returns false if
// the nets cannot fit.
bool CheckMemory(const std::vector<PreflightNet>& nets, const PlannedNets& planned,
                 const PreflightDevice& device, PreflightReport* report);

// Adds to the report how many layers and weights of the training net learn, and which are frozen,
// until iteration `unfreeze_at` if it is above 0.
void ReportLearning(const Net& net, int unfreeze_at, PreflightReport* report);

}  // namespace trainer
