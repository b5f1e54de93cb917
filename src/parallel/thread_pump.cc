#include "thread_pump.h"

#include "trainer/base/thread/spin.h"

namespace trainer {

void ThreadPump::Push(std::span<float> values) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(values);
  }
  block_.Ring(local_);
}

bool ThreadPump::Next(std::span<float>* values) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return false;
  *values = queue_.front();
  queue_.pop_front();
  return true;
}

void ThreadPump::Serve(const std::function<void(const Error&)>& fail) {
  try {
    RunSums();
    stopped_ = false;
    return;
  } catch (const EndedByPeer&) {
  } catch (const Error& error) {
    fail(error);
  }
  failed_ = true;
  ++ended_;
  FutexWakeAll(ended_);
}

void ThreadPump::RunSums() {
  for (;;) {
    std::span<float> values;
    bool found = false;
    const auto has_work = [&] {
      found = found || Next(&values);
      return found || stopped_;
    };
    while (!waiter_.Doze(has_work, while_idle_())) {
    }
    if (!found) return;
    const int64_t begin = MonotonicNs();
    Run(values);
    summing_ns_ += MonotonicNs() - begin;
    ++done_;
    ++ended_;
    FutexWakeAll(ended_);
  }
}

// Spins only while the other thread waits: the core is that one's.
void ThreadPump::Run(std::span<float> values) {
  sum_.Start(values);
  const auto advance = [&] { return sum_.Advance(); };
  if (awaited_ && while_idle_() == Waiter::kLongestSleep) return waiter_.Until(advance);
  RankSlot& slot = block_.slot(local_);
  slot.waiting_since.store(MonotonicNs(), std::memory_order_relaxed);
  while (!waiter_.Doze(advance, while_idle_())) {
  }
  slot.waiting_since.store(0, std::memory_order_relaxed);
}

void ThreadPump::WaitFor(uint64_t count) {
  awaited_ = true;
  const int64_t begin = MonotonicNs();
  while (done_ < count) {
    const uint32_t seen = ended_;
    if (failed_) throw EndedByPeer(block_.failure().code);
    if (done_ < count) FutexWait(ended_, seen, std::chrono::milliseconds(500));
  }
  awaited_ = false;
  waited_ns_ += MonotonicNs() - begin;
}

void ThreadPump::Stop() {
  stopped_ = true;
  block_.Ring(local_);
}

}  // namespace trainer
