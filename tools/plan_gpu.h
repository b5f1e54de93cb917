#pragma once
// What a run takes of a GPU's memory, there or not, or of the host's, and whether it fits.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "flags.h"
#include "trainer/backend/device.h"
#include "trainer/base/text/json.h"
#include "trainer/net/net.h"

namespace trainer {

// --gpu, --gpu=16GiB, --gpu=0.
Flag PlanGpuFlag();

// --limit, --limit=64GiB, --limit=none.
Flag PlanLimitFlag();

// Where a plan is made. Without --gpu: the CPU.
struct PlanTarget {
  std::unique_ptr<Device> device;
  bool gpu = false;
  bool estimated = false;  // no GPU was asked what its libraries need
  size_t room = 0;         // bytes to fit into; 0: none were named
  std::string room_name;   // "16.0 GiB", "GPU 0, with 79.1 GiB free"
};
// On the CPU the room is what this process may take, unless --limit names another. Throws kUsage
// for what is neither a size nor a number, kUnavailable for a GPU that is not there.
PlanTarget TargetOf(const Flags& flags);

// One line of the totals.
struct PlannedPart {
  const char* key;   // in JSON: "rule_state"
  std::string name;  // "rule state"
  size_t bytes = 0;
  bool grows = false;  // with the batch
};

// A line for each part, the largest first, and the same for programs.
std::string TotalsText(const std::vector<PlannedPart>& parts);
Json TotalsJson(const std::vector<PlannedPart>& parts);

// What of the plan of `net` is for batches on their way to the GPU while it computes.
size_t StagedBytes(const Net& net);
// Items of the first data layer's batch, 0 where there is none.
int64_t BatchOf(const Net& net);

// Whether all parts together fit into the target's room, and about which batch would.
struct Verdict {
  bool fits = true;
  int64_t batch_that_fits = 0;
  std::string text;
  Json json;
};
size_t Sum(const std::vector<PlannedPart>& parts);
Verdict Judge(const PlanTarget& target, const std::vector<PlannedPart>& parts, int64_t batch);

}  // namespace trainer
