#pragma once
// Reads --gpu and --limit of a plan: the device that it is made for, and its memory.

#include <memory>
#include <string>

#include "trainer/analysis/memory/memory_room.h"
#include "trainer/backend/device/device.h"
#include "trainer/cli/flag_set.h"

namespace trainer {

struct PlanTargetFlags {
  std::string gpu, limit;  // "" if the flag is not given
};
// Declares --gpu=SIZE|ID and --limit=SIZE.
void DeclarePlanTarget(FlagSet& flags, PlanTargetFlags* target);

struct PlanTarget {
  std::unique_ptr<Device> device;
  MemoryRoom room;
};
// Returns the device to plan for and its memory: the CPU without --gpu, a GPU of this machine for a
// number, else a device that only plans, so that this machine needs no GPU. Throws kUsage for texts
// that the flags do not take, kUnavailable for a GPU that cannot be used.
PlanTarget ResolvePlanTarget(const PlanTargetFlags& flags);

}  // namespace trainer
