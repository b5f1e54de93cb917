#pragma once
// How ranks compare what they train, and how they all-reduce the gradients of their devices.

#include <memory>

#include "trainer/backend/device/device.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/config/solver_spec.h"
#include "trainer/parallel/world.h"
#include "trainer/run/device.h"
#include "trainer/run/ranks/rank_options.h"
#include "trainer/solver/solver.h"

namespace trainer {

// The position of this rank on its host. `world` is null in a run alone.
LocalRank LocalRankOf(const World* world, bool share_gpu);

// Prepares `world` for a solver on `device`: throws kProtocol if ranks differ in what they train,
// starts the compression of gradients, and sets the callbacks of `train`. On GPUs also throws
// kUsage if two ranks have one GPU without --share_gpu, and returns the communicator of the GPUs,
// which `train` then refers to; on CPUs returns null.
std::unique_ptr<Communicator> ConnectRanks(const RankOptions& options, World& world,
                                           const SolverSpec& spec, const Device& device,
                                           const DeviceChoice& choice, CompressionType wire,
                                           SolverOptions* train);

}  // namespace trainer
