#include "caller_progress.h"

namespace trainer {

void CallerProgress::Submit(std::span<float> values) {
  waiting_.push_back(values);
  ++pushed_;
}

void CallerProgress::WaitFor(uint64_t count) {
  waiter_.Wait([&] { return Advance(count); });
}

bool CallerProgress::Advance(uint64_t until) {
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
