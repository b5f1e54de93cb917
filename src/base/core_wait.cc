#include "core_wait.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>

#include "trainer/base/thread_team.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

int64_t Nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// Measured on two cores, 300 iterations of LeNet, alone / beside a busy process / two at once: with
// libgomp 2.8 / 10.7 / over 30 s, with these 2.9 / 4.1 / 4.5 s. A wake-up takes some 50 us, so
// while the cores are the program's own a thread spins for longer than its team is ever apart in
// one step of a small net; where they are shared, whoever spins for longer than a short region
// takes the time from the thread it waits for.
constexpr int64_t kOwnSpin = 1'000'000;  // all in nanoseconds
constexpr int64_t kSharedSpin = 10'000;
constexpr int64_t kCheckInterval = 5'000'000;
constexpr int64_t kSharedFor = 100'000'000;  // after the last sign of it
// The part of its time that a thread may be without a core before the cores count as shared.
constexpr int64_t kPercentWithoutCore = 5;

// The cores count as shared until then.
std::atomic<int64_t> shared_until{0};

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr,
                 0);
}

// The second number of the thread's schedstat: nanoseconds in a run queue, not running.
class RunQueueDelay {
 public:
  RunQueueDelay() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~RunQueueDelay() {
    if (file_ >= 0) close(file_);
  }
  // Less than 0 where it cannot be read.
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
  int64_t checked = Nanoseconds();
  int64_t waited = delay.Read();
};

CoreWatch& Watch() {
  thread_local CoreWatch watch;
  return watch;
}

}  // namespace

bool SpinWhile(const std::atomic<uint32_t>& word, uint32_t value) {
  const int64_t begin = Nanoseconds();
  const int64_t end =
      begin + (shared_until.load(std::memory_order_relaxed) > begin ? kSharedSpin : kOwnSpin);
  do {
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_acquire) != value) return true;
      __builtin_ia32_pause();
    }
  } while (Nanoseconds() < end);
  return false;
}

void SleepWhile(std::atomic<uint32_t>& word, uint32_t value) {
  Futex(word, FUTEX_WAIT_PRIVATE, value);
}

void WakeAll(std::atomic<uint32_t>& word) { Futex(word, FUTEX_WAKE_PRIVATE, INT32_MAX); }

double NoteCoreWait() {
  CoreWatch& watch = Watch();
  const int64_t now = Nanoseconds();
  const int64_t passed = now - watch.checked;
  if (passed < kCheckInterval || watch.waited < 0) return -1;
  const int64_t waited = watch.delay.Read();
  if ((waited - watch.waited) * 100 > passed * kPercentWithoutCore) {
    shared_until.store(now + kSharedFor, std::memory_order_relaxed);
  }
  watch.checked = now;
  watch.waited = waited;
  return static_cast<double>(waited) * 1e-9;
}

double SecondsWithoutCore() {
  const int64_t waited = Watch().delay.Read();
  return waited < 0 ? -1 : static_cast<double>(waited) * 1e-9;
}

}  // namespace trainer
