#include "stage_clock.h"

#include <atomic>
#include <chrono>

namespace trainer {
namespace {

double RealNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::atomic<double (*)()> stage_clock{RealNow};

}  // namespace

double StageNow() { return stage_clock.load(std::memory_order_relaxed)(); }
void SetStageClock(double (*now)()) { stage_clock = now == nullptr ? RealNow : now; }

}  // namespace trainer
