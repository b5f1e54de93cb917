#pragma once
// Waiting of a team's threads, and detection of other programs that share the cores.

#include <array>
#include <atomic>
#include <cstdint>

namespace trainer {

// Spins while `word` holds `value`, for a limited time: long if this program has the cores to
// itself, short if one of its threads had to wait for a core recently. Returns whether the word
// changed.
bool SpinWhile(const std::atomic<uint32_t>& word, uint32_t value);

// Sleeps if `word` holds `value`. Returns after WakeAll, or spuriously.
void SleepWhile(std::atomic<uint32_t>& word, uint32_t value);
// Wakes all threads that sleep in SleepWhile(word). The caller changes the word before.
void WakeAll(std::atomic<uint32_t>& word);

// Records on which cores the threads of one team run. Member 0 is the caller. Any thread may call
// it; members beyond the largest counted number are ignored.
class TeamCores {
 public:
  TeamCores();
  // Records on which core the calling thread, which is `member`, runs.
  void Note(int member);
  // Returns the core that Note recorded last for the member, or -1.
  int CoreOf(int member) const {
    return cores_[static_cast<size_t>(member)].load(std::memory_order_relaxed);
  }
  // If the calling thread shares its core with another member, moves it to a core that it may use
  // and that no other member uses. Returns whether it moved. The set of cores on which the thread
  // may run stays as it was.
  bool Spread(int member);

 private:
  static constexpr size_t kMost = 512;
  std::array<std::atomic<int>, kMost> cores_;
};

// A worker calls this after it was woken up or has done its part of a region. If the program has
// the cores to itself, the worker leaves the core of its caller: a thread that is woken up may be
// put there, and on some machines (virtual ones whose cores share no cache) it then stays there for
// seconds while another core is idle.
void LeaveCallersCore(TeamCores& cores, int member);

// Each thread calls this after its part of a region. Every few milliseconds it reads how long the
// thread was ready to run and had no core. Returns SecondsWithoutCore() when it read it, else -1.
double NoteCoreWait(TeamCores& cores, int member);

}  // namespace trainer
