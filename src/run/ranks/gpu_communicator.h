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

// Returns the position of this rank on its host. `world` is null in a run alone.
LocalRank LocalRankOf(const World* world, bool share_gpu);

// Prepares `world` for a solver on `device`: throws kProtocol if ranks differ in what they train,
// starts the compression of gradients, and lets each snapshot reset what compression has left out.
// On GPUs also throws kUsage if two ranks have one GPU without --share_gpu, and kUnavailable if
// NCCL or MPI is asked for and cannot be used; returns the communicator of the GPUs, which `train`
// then refers to. On CPUs returns null.
std::unique_ptr<Communicator> ConnectRanks(const RankOptions& options, World& world,
                                           const SolverSpec& spec, const Device& device,
                                           const DeviceChoice& choice, CompressionType wire,
                                           SolverOptions* train);

}  // namespace trainer
