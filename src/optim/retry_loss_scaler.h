#pragma once

#include "trainer/backend/memory/device_array.h"
#include "trainer/optim/loss_scaler.h"

namespace trainer {

// The loss scale of an optimizer that reads its gradients on the host and evaluates a batch again
// if they overflowed, so that no step is skipped. The factor is halved after each overflow, and
// doubled after a window of steps without one. Used by one thread.
class RetryLossScaler {
 public:
  // The device must outlive the object.
  RetryLossScaler(const Device& device, const LossScaleOptions& options);

  // The factor that multiplies the gradient of the loss, on the device and on the host.
  const float* on_device() const { return memory_.data(); }
  float factor() const { return state_.factor; }

  // Called if the gradients of iteration `iter` are not finite: halves the factor and returns a
  // line for the log. Throws kDiverged if the factor is fixed or too small to be halved.
  std::string Halve(int iter);
  // Called before each step.
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
