#include "trainer/base/io_wait.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>

#include "trainer/base/text.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{2000};

std::atomic<milliseconds::rep> timeout_ms{milliseconds(kDefaultIoTimeout).count()};
std::atomic<bool (*)()> end_asked{nullptr};
constinit thread_local const std::stop_token* thread_stop = nullptr;

// How many waits are under way: one trouble, however many threads it meets.
std::atomic<int> waiting{0};

bool IsAskedToEnd() {
  return IoWaitsEnd() || (thread_stop != nullptr && thread_stop->stop_requested());
}

double Seconds(std::chrono::steady_clock::duration time) {
  return static_cast<double>(std::chrono::duration_cast<milliseconds>(time).count()) / 1000;
}

}  // namespace

void SetIoTimeout(milliseconds timeout) { timeout_ms = timeout.count(); }
milliseconds IoTimeout() { return milliseconds(timeout_ms); }
void EndIoWaitsWhen(bool (*asked)()) { end_asked = asked; }

bool IoWaitsEnd() {
  bool (*const asked)() = end_asked;
  return asked != nullptr && asked();
}

IoStopScope::IoStopScope(const std::stop_token& stop) : outer_(thread_stop) { thread_stop = &stop; }
IoStopScope::~IoStopScope() { thread_stop = outer_; }

const std::stop_token* IoStopOfThread() { return thread_stop; }

bool MayPass(int errno_value, FileWas was) {
  switch (errno_value) {
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case EAGAIN:
    case ENOTCONN:
    case ESHUTDOWN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOLINK:
    case EREMOTEIO:
    case EKEYEXPIRED:
    case ENXIO:
    case ENODEV:
      return true;
    case ENOENT:
    case ENOTDIR:
      return was == FileWas::kThere;
    default:
      return false;
  }
}

IoWait::~IoWait() {
  if (since_) --waiting;
}

void IoWait::Pause(const FileError& error, FileWas was) {
  if (!MayPass(error.errno_value(), was)) throw;
  const milliseconds timeout = IoTimeout();
  const Clock::time_point now = Clock::now();
  if (timeout.count() == 0) throw Error(ErrorCode::kIo, error.what());
  if (!since_) {
    since_ = now;
    LOG_IF(WARNING, waiting++ == 0) << error.what() << "; reading is tried again for up to "
                                    << Seconds(timeout) << " s (--io_timeout)";
  }
  const Clock::time_point end = *since_ + timeout;
  if (now >= end) {
    throw Error(ErrorCode::kIo, Join(error.what(), "; it was tried again for ", Seconds(timeout),
                                     " s (--io_timeout)"));
  }
  if (!SleepUnlessAsked(std::min<Clock::duration>(pause_, end - now))) {
    throw Error(ErrorCode::kIo,
                Join(error.what(), "; it was tried again for ", Seconds(Clock::now() - *since_),
                     " s, until the program was asked to end"));
  }
  pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
}

// False when an end was asked for.
bool IoWait::SleepUnlessAsked(Clock::duration pause) {
  constexpr milliseconds kSlice{20};
  const Clock::time_point end = Clock::now() + pause;
  while (!IsAskedToEnd()) {
    const Clock::time_point now = Clock::now();
    if (now >= end) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(kSlice, end - now));
  }
  return false;
}

void IoWait::Succeeded() {
  if (!since_) return;
  const double seconds = Seconds(Clock::now() - *since_);
  since_.reset();
  LOG_IF(WARNING, --waiting == 0) << "Reading goes on after " << seconds << " s";
}

}  // namespace trainer
