#include "core_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core_delay.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

// Calls futex(2) without a time limit. glibc has no function for it.
long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr,
                 0);
}

}  // namespace

bool SpinWhile(const std::atomic<uint32_t>& word, uint32_t value) {
  const int64_t end = MonotonicNs() + SpinTime();
  do {
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_acquire) != value) return true;
      __builtin_ia32_pause();
    }
  } while (MonotonicNs() < end);
  return false;
}

void SleepWhile(std::atomic<uint32_t>& word, uint32_t value) {
  Futex(word, FUTEX_WAIT_PRIVATE, value);
}

void WakeAll(std::atomic<uint32_t>& word) { Futex(word, FUTEX_WAKE_PRIVATE, INT32_MAX); }

TeamCores::TeamCores() {
  for (std::atomic<int>& core : cores_) core.store(-1, std::memory_order_relaxed);
}

void TeamCores::Note(int member) {
  if (static_cast<size_t>(member) >= kMost) return;
  std::atomic<int>& mine = cores_[static_cast<size_t>(member)];
  const int core = sched_getcpu();
  if (mine.load(std::memory_order_relaxed) != core) mine.store(core, std::memory_order_relaxed);
}

bool TeamCores::Spread(int member) {
  cpu_set_t allowed;
  if (static_cast<size_t>(member) >= kMost || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return false;
  }
  const int mine = sched_getcpu();
  cpu_set_t free = allowed;
  bool shares = false;
  for (size_t i = 0; i < kMost; ++i) {
    const int core = cores_[i].load(std::memory_order_relaxed);
    if (core < 0 || i == static_cast<size_t>(member)) continue;
    shares = shares || core == mine;
    CPU_CLR(static_cast<size_t>(core), &free);
  }
  if (!shares || CPU_COUNT(&free) == 0) return false;
  // The first call restricts the thread to the free cores, so it moves at once; the second call
  // then restores where it may run.
  const bool moved = sched_setaffinity(0, sizeof free, &free) == 0;
  sched_setaffinity(0, sizeof allowed, &allowed);
  Note(member);
  return moved;
}

void LeaveCallersCore(TeamCores& cores, int member) {
  if (sched_getcpu() == cores.CoreOf(0) && !CoresAreShared(MonotonicNs())) cores.Spread(member);
}

double NoteCoreWait(TeamCores& cores, int member) {
  cores.Note(member);
  const CoreDelay delay = MeasureCoreDelay();
  // If threads of one team wait for each other on one core, this does not show that another program
  // runs.
  if (delay.is_high && (!cores.Spread(member) || CoresAreShared(delay.time))) {
    MarkCoresShared(delay.time);
  }
  return delay.seconds;
}

}  // namespace trainer
