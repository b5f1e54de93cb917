#pragma once

#include <chrono>

#include "core_share.h"
#include "input_waits.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Measures seconds and iterations between reports, by the monotonic clock.
class Solver::Clock {
 public:
  // Starts at iteration `iter`.
  void Restart(int iter) {
    start_ = std::chrono::steady_clock::now();
    last_iter_ = iter;
  }

  // Seconds since the last call, or since Restart.
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }

  // Iterations since the last call, or since Restart.
  int IterationsSince(int iter) {
    const int iterations = iter - last_iter_;
    last_iter_ = iter;
    return iterations;
  }

  CoreShare& cores() { return cores_; }
  InputWaits& input() { return input_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int last_iter_ = 0;
  CoreShare cores_;
  InputWaits input_;
};

}  // namespace trainer
