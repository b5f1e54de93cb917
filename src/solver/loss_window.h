#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace trainer {

// The last losses of a run, whose mean is reported (`average_loss` of the solver).
class LossWindow {
 public:
  explicit LossWindow(int size) : size_(static_cast<size_t>(size)) {}

  // Adds a loss in the place of the oldest one and returns the mean.
  float Add(float loss) {
    last_ = loss;
    if (losses_.capacity() < size_) losses_.reserve(size_);
    if (losses_.size() < size_) {
      losses_.push_back(loss);
    } else {
      losses_[oldest_] = loss;
      oldest_ = (oldest_ + 1) % size_;
    }
    return mean_ = Mean();
  }

  // The loss that was added last, and the mean then.
  float last() const { return last_; }
  float mean() const { return mean_; }
  bool empty() const { return losses_.empty(); }

  void Save(caffe::SolverState* state) const {
    for (const float loss : losses_) state->add_recent_losses(loss);
    state->set_loss_position(static_cast<uint32_t>(oldest_));
  }
  // A snapshot of a run with a larger window has more losses; the first ones are taken.
  void Restore(const caffe::SolverState& state) {
    const int count = std::min(state.recent_losses_size(), static_cast<int>(size_));
    losses_.assign(state.recent_losses().begin(), state.recent_losses().begin() + count);
    const bool fits = state.loss_position() < static_cast<uint32_t>(std::max(count, 1));
    oldest_ = fits ? state.loss_position() : 0;
    if (!losses_.empty()) mean_ = Mean();
  }

 private:
  float Mean() const {
    float sum = 0;
    for (const float one : losses_) sum += one;
    return sum / static_cast<float>(losses_.size());
  }

  size_t size_;
  std::vector<float> losses_;
  size_t oldest_ = 0;  // its index, if the window is full
  float last_ = 0, mean_ = 0;
};

}  // namespace trainer
