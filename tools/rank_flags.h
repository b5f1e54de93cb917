#pragma once
// Several ranks that train together: their flags, and what they must agree on.

#include <memory>
#include <optional>
#include <vector>

#include "device_flags.h"
#include "flags.h"
#include "trainer/backend/device.h"
#include "trainer/config/solver_spec.h"
#include "trainer/data/record_host.h"
#include "trainer/parallel/world.h"

namespace trainer {

struct TrainOptions;

// --ranks, --bucket_size, --peer_timeout, --peer_warning and --exchange_type.
std::vector<Flag> RankFlags();
// The flags of a verb that trains: `flags`, those, --global_batch, --scale_lr, --sync_batch_norm,
// --log_all_ranks, --share_gpu and --exchange.
std::vector<Flag> WithRankFlags(std::vector<Flag> flags);

// How many ranks this process shall start and wait for; 0: none. Throws kUsage for --ranks where
// mpirun or srun has started some already.
int RanksToStart(const Flags& flags);
// The same of a verb that computes on `gpus`: of several, one rank for each. Throws kUsage where
// --ranks is another number.
int RanksToStart(const Flags& flags, const std::vector<int>& gpus);

// What --exchange_type says.
std::optional<WireType> WireOf(const Flags& flags);
// The same, or what the solver says; the solver's field is set to it.
WireType TakeWire(const Flags& flags, SolverSpec* spec);

// --strategy, and what it makes of the solver. Throws kUsage for a strategy of several ranks in a
// run alone.
Flag StrategyFlag();
Flag StagesFlag();
void TakeStages(const Flags& flags, SolverSpec* spec);
void TakeStrategy(const Flags& flags, const Rank& replica, SolverSpec* spec);

// JoinWorld, with the flags; logs how sums travel, and ranks other than 0 log warnings alone from
// here on. Warns of tasks of a batch system that nothing joins. Null in a run alone. A rank may
// wait `patience` seconds for something else before it is silent.
World* JoinRanks(const Flags& flags, int patience = 0);

// The first rank of each machine reads for all of it what one process at a time may open: its host,
// which must live until World::Finish. Null on the others. Before anything is read.
std::unique_ptr<RecordHost> ShareDatabases(World& world, const Flags& flags);

// Where --log_all_ranks is given and this is not rank 0: its lines go to a file of its own.
void LogOfRank(const Flags& flags, const Rank& replica, const SolverSpec& spec);

// Makes of --global_batch, --scale_lr and --sync_batch_norm what the run uses, and logs its batch
// and rate. Throws kUsage where a batch cannot be divided.
void ScaleForRanks(const Flags& flags, const Rank& replica, SolverSpec* spec);

// Throws kProtocol where another rank has another program, solver, net, data, number of threads,
// kind of processor or GPU, or way to compute.
void RequireEqualRanks(World& world, const SolverSpec& spec, const Device& device,
                       const GpuOptions& gpu);

// Where on its machine a rank is; of a run alone `world` is null.
LocalRank PlaceOf(const Flags& flags, const World* world);

// What ranks do before they make a solver for `device`: compares them and sets what of `options` is
// about them. Returns the group that `options` then names, where that is not the world's. Throws as
// RequireEqualRanks and RequireOwnGpus do.
std::unique_ptr<Communicator> PrepareRanks(const Flags& flags, World& world, const SolverSpec& spec,
                                           const Device& device, const DeviceChoice& choice,
                                           WireType wire, TrainOptions* options);

}  // namespace trainer
