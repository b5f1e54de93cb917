#include "core_delay.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstring>

#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

constexpr int64_t kCheckInterval = 40'000'000;  // in nanoseconds
constexpr int64_t kSharedFor = 200'000'000;     // after the last measurement above the threshold
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

bool CoresAreShared(int64_t now) { return shared_until.load(std::memory_order_relaxed) > now; }

void MarkCoresShared(int64_t now) {
  shared_until.store(now + kSharedFor, std::memory_order_relaxed);
}

CoreDelay MeasureCoreDelay() {
  CoreWatch& watch = Watch();
  CoreDelay delay = {.time = MonotonicNs()};
  const int64_t passed = delay.time - watch.checked;
  if (passed < kCheckInterval || watch.waited < 0) return delay;
  const int64_t waited = watch.delay.Read();
  const int64_t percent = (waited - watch.waited) * 100 / passed;
  delay.is_high = percent >= (CoresAreShared(delay.time) ? kStayPercent : kEnterPercent);
  delay.seconds = static_cast<double>(waited) * 1e-9;
  watch.checked = delay.time;
  watch.waited = waited;
  return delay;
}

int64_t ReadCoreDelay() { return Watch().delay.Read(); }

}  // namespace trainer
