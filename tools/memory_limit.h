#pragma once
// --memory=SIZE: the memory that a run may take, kept by computing outputs again.

#include <optional>

#include "flags.h"
#include "plan_gpu.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

Flag MemoryLimitFlag();

// What a run on the device may take: what is free on a GPU, or what this process may take.
size_t MemoryFor(const Device& device);

// What the flag names, of `auto` what is there for the device. Nothing without the flag. Throws
// kUsage for what is no size.
std::optional<size_t> MemoryLimit(const Flags& flags, const Device& device);

// What a run of `spec` may leave to the values of its training net (NetOptions::most_value_bytes)
// so that all of it takes `limit`; 0 where it fits as it is. Throws kResource where the rest alone
// takes more.
size_t MostValueBytes(size_t limit, const SolverSpec& spec, const Device& device);

// The same of the flag, of one rank; 0 without it. With the strategy pipeline it is that of the
// rank's stage, for each of the batches that are under way in it.
size_t MostValueBytes(const Flags& flags, const SolverSpec& spec, const Device& device,
                      const Rank& replica = {});

// A target without a device, for counting the parts of what a run takes on `device`.
PlanTarget CountingTarget(const Device& device);

}  // namespace trainer
