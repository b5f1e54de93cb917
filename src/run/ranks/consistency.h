#pragma once
// Checks that the ranks of a run train the same model on the same data.

#include "trainer/backend/device/device.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/config/solver_spec.h"
#include "trainer/parallel/world.h"

namespace trainer {

// Throws kProtocol, on rank 0, if another rank has another program, solver, net, data, number of
// threads, kind of processor or GPU, or precision. Logs how long an epoch is.
void RequireConsistentRanks(World& world, const SolverSpec& spec, const Device& device,
                            const GpuOptions& gpu);

}  // namespace trainer
