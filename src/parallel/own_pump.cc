#include "own_pump.h"

namespace trainer {

void OwnPump::Push(std::span<float> values) {
  waiting_.push_back(values);
  ++pushed_;
}

void OwnPump::WaitFor(uint64_t count) {
  waiter_.Until([&] { return GoOn(count); });
}

// Whether `until` sums are done, or all.
bool OwnPump::GoOn(uint64_t until) {
  while (done_ < pushed_ && done_ < until) {
    if (!running_) sum_.Start(waiting_[next_]);
    running_ = true;
    if (!sum_.Advance()) return false;
    running_ = false;
    ++next_;
    ++done_;
  }
  if (done_ == pushed_) {
    waiting_.clear();
    next_ = 0;
  }
  return true;
}

}  // namespace trainer
