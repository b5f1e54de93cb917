#include "trainer/parallel/failure.h"

#include <chrono>
#include <memory>
#include <thread>

#include "joined_world.h"
#include "node/control_block.h"
#include "node/futex.h"
#include "trainer/base/error/error.h"
#include "trainer/parallel/environment.h"

namespace trainer {
namespace {

// Waits up to 10 s for the lost peer's own report, because the peer knows why it ends.
void AwaitPeerReport(const ControlBlock& block) {
  constexpr std::chrono::seconds kTurn{10};
  const auto end = std::chrono::steady_clock::now() + kTurn;
  while (block.failure().code == 0 && std::chrono::steady_clock::now() < end) {
    FutexWait(block.failure_word(), 0, std::chrono::milliseconds(100));
  }
}

}  // namespace

bool MayReportFailure(int* code) {
  // Every node, or every rank before it joins, may fail with the same error. Ranks other than the
  // first one wait, so that its message alone is printed and ends the run. mpirun needs seconds to
  // notice an ended process, more so on busy cores.
  constexpr std::chrono::seconds kTurn{4};
  JoinedWorld* const world = JoinedWorld::Current().get();
  if (world == nullptr) {
    const LaunchEnvironment environment = ReadLaunchEnvironment();
    const bool waits = environment.launcher == LaunchEnvironment::kMpi && environment.rank > 0;
    if (waits) std::this_thread::sleep_for(kTurn);
    return true;
  }
  if (world->finished()) return true;
  if (*code == static_cast<int>(ErrorCode::kPeerLost)) AwaitPeerReport(world->block());
  if (world->topology().node > 0) std::this_thread::sleep_for(kTurn);
  if (world->block().ReportFailure({*code, world->topology().rank.rank})) return true;
  *code = world->block().failure().code;
  return false;
}

std::string RankPrefix() {
  const JoinedWorld* const world = JoinedWorld::Current().get();
  if (world == nullptr) return "";
  return world->topology().name() + ": ";
}

int LeaveWorld(int code) {
  std::unique_ptr<JoinedWorld>& world = JoinedWorld::Current();
  if (world == nullptr) return code;
  if (!world->finished()) {
    MayReportFailure(&code);
    world->Abort(code);
  }
  world.reset();
  return code;
}

}  // namespace trainer
