#pragma once

#include "loss_scaler.h"
#include "trainer/backend/memory/device_array.h"

namespace trainer {

// The loss scale of an optimizer that reads its gradients on the host and evaluates a batch again
// if they overflowed, so that no step is skipped. The factor is halved after each overflow, and
// doubled after a window of steps without one. Used by one thread.
class RetryLossScaler {
 public:
  // The device must outlive the object.
  RetryLossScaler(const Device& device, const LossScaleOptions& options);

  // Returns the address on the device of the factor that multiplies the gradient of the loss.
  const float* on_device() const { return memory_.data(); }
  // Returns that factor.
  float factor() const { return state_.factor; }

  // Called if the gradients of iteration `iter` are not finite: halves the factor and returns a
  // line for the log. Throws kDiverged if the factor is fixed or too small to be halved.
  std::string Halve(int iter);
  // Called before each step: counts it, and doubles the factor after a window of steps without an
  // overflow, unless it is fixed or at its largest value.
  void BeginStep();

  const LossScaleState& state() const { return state_; }
  // Sets the state of a snapshot, except the factor if it is fixed.
  void Restore(const LossScaleState& state);

 private:
  // Sets the factor on the host and on the device.
  void Set(float factor);

  const Device& device_;
  LossScaleOptions options_;
  DeviceFloats memory_;
  LossScaleState state_;
};

}  // namespace trainer
