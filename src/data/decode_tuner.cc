#include "decode_tuner.h"

#include <algorithm>

namespace trainer {

void DecodeTuner::Note(double period, double waited, bool decoding_is_slower) {
  if (threads_ >= most_ && !added_) return;
  if (seen_++ < kSettling) return;
  all_ += period;
  waited_ += waited;
  periods_[seen_ - kSettling - 1] = period;
  if (seen_ == kSettling + kWindow) EndWindow(decoding_is_slower);
}

void DecodeTuner::EndWindow(bool decoding_is_slower) {
  constexpr double kWorthAdding = 0.05, kWorthKeeping = 0.97;
  // The median: a test or a snapshot in between makes some periods longer.
  const auto middle = periods_.begin() + kWindow / 2;
  std::nth_element(periods_.begin(), middle, periods_.end());
  const bool waits = waited_ > kWorthAdding * all_;
  seen_ = 0;
  all_ = waited_ = 0;
  if (added_ && *middle > kWorthKeeping * period_before_) {
    added_ = false;
    most_ = --threads_;
    return;
  }
  added_ = waits && decoding_is_slower && threads_ < most_;
  period_before_ = *middle;
  if (added_) ++threads_;
}

}  // namespace trainer
