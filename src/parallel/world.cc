#include "trainer/parallel/world.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "join/join_ranks.h"
#include "joined_world.h"
#include "mpi/mpi.h"
#include "mpi/mpi_server.h"
#include "mpi/mpi_thread.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/environment.h"

namespace trainer {
namespace {

// Throws if the variables of mpirun or srun are set although it has ended.
[[noreturn]] void FailWithoutServer(const LaunchEnvironment& environment) {
  throw Error(ErrorCode::kUnavailable,
              Join("the variables of mpirun or srun are set (", environment.count_variable, "=",
                   environment.count,
                   "), but mpirun or srun has already ended: this shell inherited them. Start the "
                   "ranks again with mpirun or srun; to train with one rank, unset ",
                   environment.count_variable, " and PMIX_RANK"));
}

// Throws for a launcher of another MPI. Otherwise each process would train its own model, and all
// would write the same files.
[[noreturn]] void FailAlone(const LaunchEnvironment& environment) {
  const std::string& variable = environment.count_variable;
  throw Error(ErrorCode::kUnavailable,
              Join(variable, " says that ", environment.count,
                   " ranks were started, but this program's MPI finds only this rank: another MPI "
                   "started them. Start them with its own mpirun -np ",
                   environment.count, ", with srun --mpi=pmix, or on one machine with --ranks=",
                   environment.count, "; to train with one rank, unset ", variable));
}

}  // namespace

World* JoinWorld(const World::Options& settings) {
  const LaunchEnvironment environment = ReadLaunchEnvironment();
  if (environment.launcher == LaunchEnvironment::kNone) return nullptr;
  std::unique_ptr<MpiThread> thread;
  std::unique_ptr<Mpi> mpi;
  JoinedRank joined;
  if (environment.launcher == LaunchEnvironment::kFork) {
    joined = JoinForked(environment);
  } else {
    if (!Mpi::WhyNot().empty()) throw Error(ErrorCode::kUnavailable, Mpi::WhyNot());
    if (IsMpiServerGone([](const char* name) { return std::getenv(name); })) {
      FailWithoutServer(environment);
    }
    thread = std::make_unique<MpiThread>();
    thread->Run([&] {
      mpi = Mpi::Start();
      if (mpi->count() > 1) {
        joined = JoinMpi(*mpi);
      } else {
        mpi->Finish();
      }
    });
    if (mpi->count() == 1) {
      if (environment.count > 1) FailAlone(environment);
      return nullptr;
    }
  }
  joined.block->status(joined.topology.local_rank).state = RankState::kJoined;
  std::unique_ptr<JoinedWorld>& world = JoinedWorld::Current();
  world =
      std::make_unique<JoinedWorld>(std::move(joined), std::move(thread), std::move(mpi), settings);
  world->Begin(settings);
  return world.get();
}

}  // namespace trainer
