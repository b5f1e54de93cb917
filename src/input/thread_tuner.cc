#include "thread_tuner.h"

#include <algorithm>

namespace trainer {

void ThreadTuner::Note(double period, double waited, bool decoding_is_slower, size_t ready) {
  if (threads_ >= most_ && !added_) return;
  if (settling_ > 0) {
    --settling_;
    return;
  }
  all_ += period;
  waited_ += waited;
  periods_[seen_++] = period;
  if (seen_ == kMost || (seen_ >= kLeast && all_ >= kSeconds)) EndWindow(decoding_is_slower, ready);
}

void ThreadTuner::EndWindow(bool decoding_is_slower, size_t ready) {
  constexpr double kWorthAdding = 0.05, kWorthKeeping = 0.97;
  // The median: a test or a snapshot in between makes some periods longer.
  std::array<double, kMost> sorted = periods_;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(seen_ / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<ptrdiff_t>(seen_));
  const double period = *middle;
  const bool slower = added_ && period > kWorthKeeping * period_before_;
  if (slower && seen_ < kMost) return;  // a few batches may be slow by chance
  const bool waits = waited_ > kWorthAdding * all_;
  seen_ = 0;
  all_ = waited_ = 0;
  if (slower) {
    added_ = false;
    most_ = --threads_;
    return;
  }
  added_ = waits && decoding_is_slower && threads_ < most_;
  period_before_ = period;
  if (!added_) return;
  ++threads_;
  settling_ = ready + 1;  // and the one that is being made
}

}  // namespace trainer
