#include "input_clock.h"

#include <atomic>
#include <chrono>

namespace trainer {
namespace {

double RealNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::atomic<double (*)()> stage_clock{RealNow};

}  // namespace

double InputNow() { return stage_clock.load(std::memory_order_relaxed)(); }
void SetInputClock(double (*now)()) { stage_clock = now == nullptr ? RealNow : now; }

}  // namespace trainer
