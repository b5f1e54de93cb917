#include "trainer/base/watched_read.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/io_wait.h"
#include "trainer/base/left_threads.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

struct Reads {
  std::mutex mutex;
  std::vector<WatchedRead*> all;  // an inner one behind the outer one
  pid_t process = 0;              // in which a thread looks at them
};

Reads& TheReads() {
  static auto* const reads = new Reads;  // a thread may hang until the process ends
  return *reads;
}

std::atomic<EndOnHang> end_on_hang = nullptr;

std::optional<Error> FindHanging(Reads& reads) {
  const std::lock_guard lock(reads.mutex);
  std::optional<pthread_t> hangs;
  for (WatchedRead* read : reads.all) {
    if (read->Hangs() && !hangs) hangs = read->thread();
  }
  if (!hangs) return std::nullopt;
  const auto innermost = std::find_if(
      reads.all.rbegin(), reads.all.rend(),
      [&](const WatchedRead* read) { return pthread_equal(read->thread(), *hangs) != 0; });
  return Error(ErrorCode::kIo, {(*innermost)->path()},
               Join("a read has not come back within ", IoTimeout().count() / 1000.0,
                    " s (--io_timeout): the disk or the file server does not answer"));
}

// What hangs in a thread that was left behind ends the run already.
void Look(Reads& reads) {
  constexpr std::chrono::milliseconds kInterval{250};
  for (;;) {
    std::this_thread::sleep_for(kInterval);
    const std::optional<Error> error = FindHanging(reads);
    const EndOnHang end = end_on_hang;
    if (error && end != nullptr && !HasThreadsLeftBehind()) return end(*error);
  }
}

// Signals are for other threads. A forked process has neither the thread nor the others' reads.
void LookFromHereOn(Reads& reads) {
  reads.process = getpid();
  std::erase_if(reads.all, [](const WatchedRead* read) {
    return pthread_equal(read->thread(), pthread_self()) == 0;
  });
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([&reads] { Look(reads); }).detach();
  } catch (const std::system_error&) {  // a process that may have no more threads goes on unwatched
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void EndHangingReadsWith(EndOnHang end) { end_on_hang = end; }

WatchedRead::WatchedRead(const std::string& path)
    : path_(path),
      thread_(pthread_self()),
      listed_(end_on_hang != nullptr && IoStopOfThread() == nullptr) {
  if (!listed_) return;
  Reads& reads = TheReads();
  const std::lock_guard lock(reads.mutex);
  if (reads.process != getpid()) LookFromHereOn(reads);
  reads.all.push_back(this);
}

WatchedRead::~WatchedRead() {
  if (!listed_) return;
  Reads& reads = TheReads();
  const std::lock_guard lock(reads.mutex);
  std::erase(reads.all, this);
}

bool WatchedRead::Hangs() { return clock_.HasStalled(CoreTimeOf(thread_), IoTimeout()); }

}  // namespace trainer
