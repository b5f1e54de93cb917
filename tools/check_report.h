#pragma once
// What the parts of `trainer check` fill and hand on. Each part is a file tools/check_*.cc.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device_flags.h"
#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/json.h"
#include "trainer/dataset/audit.h"
#include "trainer/net/net.h"
#include "trainer/run/preflight/diagnostics.h"
#include "trainer/run/preflight/lints.h"

namespace trainer {

// Diagnostics, and figures for who wants to know more than that all is good.
struct CheckReport {
  Diagnostics diagnostics;
  std::vector<std::pair<std::string, std::string>> lines;  // name and text of each figure
  Json figures = Json::Object(), passes = Json::Object();
  std::string memory, data, snapshots;  // what the last line says beside the verdict
};

// One net of a run.
struct CheckedNet {
  std::string title;  // "training net", "test net #0"
  const NetSpec* spec = nullptr;
  NetOptions options;
  int64_t batches = 0;  // that the training reads, or one test; 0: not known
  int batches_per_iteration = 1;
  bool one_exact_pass = false;  // a test without test_iter
  bool tests_at_start = true;   // test_initialization
};

// A net as planned.
struct NetPlan {
  bool good = false;
  size_t value_bytes = 0, staged_bytes = 0;  // staged: of these, on their way to a GPU
  std::vector<PlannedBlock> largest;         // values, the largest first
  std::vector<LabelReader> readers;
};

struct RunPlan {
  std::vector<NetPlan> nets;
  MemoryEstimate memory;

  bool good() const;
};

// Plans all nets as a run builds them, without memory. Every layer's error is a diagnostic. `spec`
// and `rule`: of the run whose training net is the first; null for a net alone.
RunPlan PlanNets(const std::vector<CheckedNet>& nets, const SolverSpec* spec, const StepRule* rule,
                 const Device& device, CheckReport* report);

struct CheckedDevice {
  std::unique_ptr<Device> device;
  HostMemory gpu_memory;  // of a GPU
};

// The chosen device; where it cannot be used, a diagnostic, and the CPU to go on with.
CheckedDevice DeviceToCheck(const DeviceChoice& choice, Diagnostics* diagnostics);

// Compares all that is planned with what there is, on the host and on a GPU. False when it cannot
// fit.
bool CheckMemory(const std::vector<CheckedNet>& nets, const RunPlan& plan,
                 const CheckedDevice& device, CheckReport* report);

// Data layers looked at: reading, and later telling, as the nets in between hold databases open.
struct LayerAudit {
  size_t net = 0;  // index into the nets
  std::string layer;
  std::vector<LabelReader> readers;
  DataAudit data;
};
// Files that cannot be opened are diagnostics at once.
std::vector<LayerAudit> AuditNets(const std::vector<CheckedNet>& nets, const RunPlan& plan,
                                  Diagnostics* diagnostics);
// Returns the nets whose data have an error.
std::set<size_t> ReportData(const std::vector<CheckedNet>& nets,
                            const std::vector<LayerAudit>& audits, CheckReport* report);

// One pass forward, of a training net backward too. `fresh`: the weights
// are the fillers'.
void CheckPass(const CheckedNet& checked, Net& net, const Device& device, bool fresh,
               CheckReport* report);

// All that a run of the solver would meet.
void CheckSolverRun(const Flags& flags, CheckReport* report);

}  // namespace trainer
