#include "trainer/base/thread/spin.h"

#include "core_delay.h"

namespace trainer {
namespace {

// If other programs share the cores, a thread that spins for longer than a short region takes time
// from the thread for which it waits. If the program has the cores to itself, sleeping costs more
// than it saves: a wake-up takes 50 us, more on a virtual machine, and may put the thread on its
// caller's core. So a thread then spins for longer than the threads of a team ever wait for each
// other in training.
constexpr int64_t kOwnSpin = 10'000'000;  // both in nanoseconds
constexpr int64_t kSharedSpin = 10'000;

}  // namespace

int64_t SpinTime() { return CoresAreShared(MonotonicNs()) ? kSharedSpin : kOwnSpin; }

void NoteWait() {
  const CoreDelay delay = MeasureCoreDelay();
  if (delay.is_high) MarkCoresShared(delay.time);
}

double SecondsWithoutCore() {
  const int64_t waited = ReadCoreDelay();
  return waited < 0 ? -1 : static_cast<double>(waited) * 1e-9;
}

}  // namespace trainer
