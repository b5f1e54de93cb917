#pragma once
// --gpu and --limit of a plan: the device that it is made for, and its memory.

#include <memory>
#include <string>

#include "trainer/analysis/memory/memory_room.h"
#include "trainer/backend/device/device.h"
#include "trainer/cli/flag_set.h"

namespace trainer {

struct PlanTargetFlags {
  std::string gpu, limit;  // "" without the flag
};
void DeclarePlanTarget(FlagSet& flags, PlanTargetFlags* target);

struct PlanTarget {
  std::unique_ptr<Device> device;
  MemoryRoom room;
};
// Throws kUsage for texts that the flags do not take, kUnavailable for a GPU that cannot be used.
PlanTarget ResolvePlanTarget(const PlanTargetFlags& flags);

}  // namespace trainer
