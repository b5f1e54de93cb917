#include "core_share.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/text/text.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer {

std::string CoreShare::Note(double seconds) {
  constexpr double kLeastSeconds = 1, kWorthSaying = 0.2, kQuietSeconds = 600;
  seconds_ += seconds;
  if (seconds_ < kLeastSeconds) return "";
  const int threads = TeamSize();
  const double thread_seconds = std::exchange(seconds_, 0) * threads;
  const double before = std::exchange(without_core_, TeamSecondsWithoutCore());
  const double share = (without_core_ - before) / thread_seconds;
  quiet_seconds_ = std::max(0.0, quiet_seconds_ - thread_seconds / threads);
  if (quiet_seconds_ > 0 || share < kWorthSaying) return "";
  quiet_seconds_ = kQuietSeconds;
  return Join("Other programs use this run's cores: its ", threads,
              threads == 1 ? " thread was" : " threads were",
              " ready to run but without a core for ", std::lround(100 * share),
              " % of the time. The run continues, but it is slower; request exclusive cores from "
              "the batch system, or set OMP_NUM_THREADS to the number of free cores");
}

}  // namespace trainer
