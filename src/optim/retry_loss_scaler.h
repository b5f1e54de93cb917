#pragma once

#include "trainer/backend/memory/device_array.h"
#include "trainer/optim/loss_scaler.h"

namespace trainer {

// The loss scale of a step rule that reads its gradients on the host and evaluates a batch again
// where they overflowed, so that no step is skipped. The factor is halved for that, and doubled
// after a window of steps without. Used by one thread.
class RetryLossScaler {
 public:
  // The device must outlive it.
  RetryLossScaler(const Device& device, const LossScaleOptions& options);

  // What the loss's gradient is multiplied by: on the device, and here.
  const float* on_device() const { return memory_.data(); }
  float factor() const { return state_.factor; }

  // Gradients of iteration `iter` are not finite: halves the factor, and returns what there is to
  // log of that. Throws kDiverged where it cannot.
  std::string Halve(int iter);
  // Before each step.
  void BeginStep();

  const LossScaleState& state() const { return state_; }
  void Restore(const LossScaleState& state);

 private:
  void Set(float factor);

  const Device& device_;
  LossScaleOptions options_;
  DeviceFloats memory_;
  LossScaleState state_;
};

}  // namespace trainer
