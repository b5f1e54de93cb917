#include "retry_loss_scaler.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

RetryLossScaler::RetryLossScaler(const Device& device, const LossScaleOptions& options)
    : device_(device), options_(options), memory_(device, 1) {
  Set(options.factor);
}

void RetryLossScaler::Set(float factor) {
  state_.factor = factor;
  device_.CopyToDevice(memory_.data(), &factor, sizeof(factor));
}

std::string RetryLossScaler::Halve(int iter) {
  const float before = state_.factor;
  if (options_.fixed || before / 2 < kMinLossScale) {
    throw Error(
        ErrorCode::kDiverged,
        Join("iteration ", iter, ": gradients are not finite (NaN or infinity) with loss scale ",
             before, options_.fixed ? "; give a smaller loss_scale, or 0" : "",
             ". Try a lower base_lr, and check the scale of the data"));
  }
  Set(before / 2);
  state_.good = 0;
  return Join("Iteration ", iter, ": gradients are not finite (NaN or infinity) with loss scale ",
              before, "; the batch is evaluated again with loss scale ", state_.factor);
}

void RetryLossScaler::BeginStep() {
  if (options_.fixed || ++state_.good < options_.window) return;
  state_.good = 0;
  if (state_.factor * 2 <= kMaxLossScale) Set(state_.factor * 2);
}

void RetryLossScaler::Restore(const LossScaleState& state) {
  state_.good = state.good;
  if (!options_.fixed) Set(state.factor);
}

}  // namespace trainer
