#pragma once
// How a thread of a team waits, and how it learns that the cores are shared with other programs.

#include <array>
#include <atomic>
#include <cstdint>

namespace trainer {

// Spins while `word` holds `value`, for a bounded time: long while the cores are this program's
// own, short when threads of it had to wait for a core lately. Returns whether the word changed.
bool SpinWhile(const std::atomic<uint32_t>& word, uint32_t value);

// Sleeps unless `word` holds something else than `value`; returns after WakeAll, or for no reason.
void SleepWhile(std::atomic<uint32_t>& word, uint32_t value);
void WakeAll(std::atomic<uint32_t>& word);

// On which cores the threads of one team run. Member 0 is the caller. Any thread; a member beyond
// the most that are counted is left alone.
class TeamCores {
 public:
  TeamCores();
  // Notes where the calling thread, which is `member`, runs.
  void Note(int member);
  int CoreOf(int member) const {
    return cores_[static_cast<size_t>(member)].load(std::memory_order_relaxed);
  }
  // Moves the calling thread to a core that it may use and no other member does, where it shares
  // its own with one. Returns whether it did. Where threads may run stays as it was.
  bool Spread(int member);

 private:
  static constexpr size_t kMost = 512;
  std::array<std::atomic<int>, kMost> cores_;
};

// Called by a worker that was woken up or has done its part of a region. While the cores are the
// program's own it leaves the core of its caller: a thread that was woken up may be put there, and
// on some machines (virtual ones whose cores share no cache) it then stays there for seconds while
// another core is idle.
void LeaveCallersCore(TeamCores& cores, int member);

// Called by each thread after its part of a region: every few milliseconds it reads how long the
// thread was ready to run and had no core. Returns SecondsWithoutCore() where it read it, else -1.
double NoteCoreWait(TeamCores& cores, int member);

}  // namespace trainer
