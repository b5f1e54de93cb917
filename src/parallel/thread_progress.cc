#include "thread_progress.h"

#include "trainer/base/thread/spin.h"

namespace trainer {

// Adds to the queue and wakes the thread.
void ThreadProgress::Submit(std::span<float> values) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(values);
  }
  block_.Notify(local_);
}

bool ThreadProgress::TakeQueued(std::span<float>* values) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return false;
  *values = queue_.front();
  queue_.pop_front();
  return true;
}

void ThreadProgress::Serve(const std::function<void(const Error&)>& fail) {
  try {
    RunSums();
    stopped_ = false;
    return;
  } catch (const PeerFailed&) {
  } catch (const Error& error) {
    fail(error);
  }
  failed_ = true;
  ++ended_;
  FutexWakeAll(ended_);
}

void ThreadProgress::RunSums() {
  for (;;) {
    std::span<float> values;
    bool found = false;
    const auto has_work = [&] {
      found = found || TakeQueued(&values);
      return found || stopped_;
    };
    while (!waiter_.Park(has_work, while_idle_())) {
    }
    if (!found) return;
    const int64_t begin = MonotonicNs();
    ReduceOne(values);
    summing_ns_ += MonotonicNs() - begin;
    ++done_;
    ++ended_;
    FutexWakeAll(ended_);
  }
}

// Spins only while the training thread waits, because both use the same core.
void ThreadProgress::ReduceOne(std::span<float> values) {
  sum_.Start(values);
  const auto advance = [&] { return sum_.Advance(); };
  if (awaited_ && while_idle_() == Waiter::kLongestSleep) return waiter_.Wait(advance);
  RankStatus& status = block_.status(local_);
  status.waiting_since.store(MonotonicNs(), std::memory_order_relaxed);
  while (!waiter_.Park(advance, while_idle_())) {
  }
  status.waiting_since.store(0, std::memory_order_relaxed);
}

// Looks for a failure at least twice a second, because a thread that has failed completes nothing.
void ThreadProgress::WaitFor(uint64_t count) {
  awaited_ = true;
  const int64_t begin = MonotonicNs();
  while (done_ < count) {
    const uint32_t seen = ended_;
    if (failed_) throw PeerFailed(block_.failure().code);
    if (done_ < count) FutexWait(ended_, seen, std::chrono::milliseconds(500));
  }
  awaited_ = false;
  waited_ns_ += MonotonicNs() - begin;
}

void ThreadProgress::Stop() {
  stopped_ = true;
  block_.Notify(local_);
}

}  // namespace trainer
