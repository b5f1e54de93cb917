#include "core_share.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/text.h"
#include "trainer/base/thread_team.h"

namespace trainer {

std::string CoreShare::Note(double seconds) {
  constexpr double kWorthSaying = 0.2, kQuietSeconds = 600;
  const double without_core = TeamSecondsWithoutCore();
  const double passed = without_core - without_core_;
  without_core_ = without_core;
  quiet_seconds_ = std::max(0.0, quiet_seconds_ - seconds);
  const int threads = TeamSize();
  if (seconds <= 0 || quiet_seconds_ > 0 || passed < kWorthSaying * seconds * threads) return "";
  quiet_seconds_ = kQuietSeconds;
  return Join("Other programs use this run's cores: its ", threads,
              threads == 1 ? " thread was" : " threads were",
              " ready to run but without a core for ",
              std::lround(100 * passed / (seconds * threads)),
              " % of the time. It goes on, more slowly; ask the batch system for cores of its own, "
              "or set OMP_NUM_THREADS to the number of free ones");
}

}  // namespace trainer
