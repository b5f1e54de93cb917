#include "core_wait.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "trainer/base/thread/spin.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer {
namespace {

// If other programs share the cores, a thread that spins for longer than a short region takes time
// from the thread for which it waits. If the program has the cores to itself, sleeping costs more
// than it saves: a wake-up takes 50 us, more on a virtual machine, and may put the thread on its
// caller's core. So a thread then spins for longer than the threads of a team ever wait for each
// other in training.
constexpr int64_t kOwnSpin = 10'000'000;  // all in nanoseconds
constexpr int64_t kSharedSpin = 10'000;
constexpr int64_t kCheckInterval = 40'000'000;
constexpr int64_t kSharedFor = 200'000'000;  // after the last measurement above the threshold
// Percentages of the time that a thread is ready but has no core: the cores count as shared from
// kEnterPercent on, and stay so from kStayPercent on. Measured on two cores with LeNet, in
// intervals of 20 ms: without other programs the percentage is below 20 in 95 of 100 intervals (the
// thread that reads data needs a core too), with some at 40. Next to one busy process it is 45 to
// 55 in the intervals of the thread that shares its core, and 35 to 60 with two runs at once. With
// short spins it is 20 to 40 in both cases.
constexpr int64_t kEnterPercent = 30;
constexpr int64_t kStayPercent = 12;

// The cores count as shared until this time.
std::atomic<int64_t> shared_until{0};
// Returns whether the cores count as shared with other programs at time `now`.
bool Shared(int64_t now) { return shared_until.load(std::memory_order_relaxed) > now; }

// Calls futex(2) without a time limit. glibc has no function for it.
long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr,
                 0);
}

// Reads the second number of the thread's schedstat: the nanoseconds that it waited in a run queue.
class RunQueueDelay {
 public:
  RunQueueDelay() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~RunQueueDelay() {
    if (file_ >= 0) close(file_);
  }
  // Returns less than 0 if the file cannot be read.
  int64_t Read() const {
    char text[96];
    const ssize_t size = file_ < 0 ? -1 : pread(file_, text, sizeof text, 0);
    if (size <= 0) return -1;
    const char* end = text + size;
    const auto* blank = static_cast<const char*>(memchr(text, ' ', static_cast<size_t>(size)));
    int64_t delay = -1;
    if (blank != nullptr) std::from_chars(blank + 1, end, delay);
    return delay;
  }

 private:
  int file_;
};

struct CoreWatch {
  RunQueueDelay delay;
  int64_t checked = MonotonicNs();
  int64_t waited = delay.Read();
};

// Returns the calling thread's last measurement. The first call makes one.
CoreWatch& Watch() {
  thread_local CoreWatch watch;
  return watch;
}

}  // namespace

int64_t SpinTime() { return Shared(MonotonicNs()) ? kSharedSpin : kOwnSpin; }

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
  if (sched_getcpu() == cores.CoreOf(0) && !Shared(MonotonicNs())) cores.Spread(member);
}

double NoteCoreWait(TeamCores& cores, int member) {
  cores.Note(member);
  CoreWatch& watch = Watch();
  const int64_t now = MonotonicNs();
  const int64_t passed = now - watch.checked;
  if (passed < kCheckInterval || watch.waited < 0) return -1;
  const int64_t waited = watch.delay.Read();
  const bool shared = Shared(now);
  const int64_t percent = (waited - watch.waited) * 100 / passed;
  // If threads of one team wait for each other on one core, this does not show that another program
  // runs.
  if (percent >= (shared ? kStayPercent : kEnterPercent) && (!cores.Spread(member) || shared)) {
    shared_until.store(now + kSharedFor, std::memory_order_relaxed);
  }
  watch.checked = now;
  watch.waited = waited;
  return static_cast<double>(waited) * 1e-9;
}

void NoteWait() {
  CoreWatch& watch = Watch();
  const int64_t now = MonotonicNs();
  if (now - watch.checked < kCheckInterval || watch.waited < 0) return;
  const int64_t waited = watch.delay.Read();
  const int64_t percent = (waited - watch.waited) * 100 / (now - watch.checked);
  if (percent >= (Shared(now) ? kStayPercent : kEnterPercent)) {
    shared_until.store(now + kSharedFor, std::memory_order_relaxed);
  }
  watch.checked = now;
  watch.waited = waited;
}

double SecondsWithoutCore() {
  const int64_t waited = Watch().delay.Read();
  return waited < 0 ? -1 : static_cast<double>(waited) * 1e-9;
}

}  // namespace trainer
