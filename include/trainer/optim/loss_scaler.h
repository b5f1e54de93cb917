#pragma once
// The loss scale and the clipping of gradients, which the device decides
// (optim/gradient_verdict.h).

#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "trainer/optim/gradient_verdict.h"

namespace trainer {

// How gradients are scaled. The loss's gradient is multiplied by a factor, so that all gradients
// stay within the range of a narrow type, and the gradients of parameters are divided by it.
// Source: Micikevicius and others, arXiv:1710.03740, sections 3.2 and 4.
struct LossScaleOptions {
  float factor = 65536;    // the initial factor
  bool fixed = false;      // the factor never changes
  uint32_t window = 2000;  // the factor is doubled after so many updates without a skipped one
};

// The state of a loss scale that a snapshot holds.
struct LossScaleState {
  float factor = 1;
  uint32_t good = 0;
  uint64_t skipped = 0;
};

// One object per run. If the device is asynchronous, call Last() when the next update begins,
// because the verdict has arrived by then and the host waits for nothing that was queued since.
// Used by one thread.
class LossScaler {
 public:
  // `clip`: as in VerdictRules. Allocates on the device, which must outlive the object.
  LossScaler(const Device& device, float clip, const std::optional<LossScaleOptions>& scale);

  // Queues the verdict on gradients whose sum of squares is *squares. It queues the same each time,
  // so that a device may record it.
  void Decide(const float* squares, int ranks);
  // Called after each Decide, for update `iter`: starts the copy of the verdict to the host. Throws
  // kDiverged if too many updates in a row before it were skipped.
  void Read(int iter);

  // On the device.
  const GradientVerdict* verdict() const { return verdict_; }
  // Null without a loss scale.
  const float* loss_scale() const { return scale_ ? &verdict_->loss_scale : nullptr; }

  // The last verdict.
  const GradientVerdict& Last();
  // A line for the log about the last verdict, returned once: the update was clipped or skipped;
  // else "".
  std::string TakeNote();

  // Only with a loss scale.
  LossScaleState State();
  void Restore(const LossScaleState& state);
  // From the next verdict on gradients are not scaled, and the count of skipped updates is zero.
  void EndScaling();

 private:
  struct Free {
    const Device* device;
    void operator()(void* memory) const { device->Free(memory); }
  };

  const Device& device_;
  VerdictRules rules_;
  std::optional<LossScaleOptions> scale_;
  std::unique_ptr<void, Free> memory_;
  GradientVerdict* verdict_;
  std::pmr::vector<GradientVerdict> arriving_;
  GradientVerdict last_;
  int iter_ = 0;
  bool decided_ = false, told_ = true;   // about the last one: in last_, by TakeNote
  std::unique_ptr<AsyncReadback> read_;  // last: ends before arriving_ does
};

}  // namespace trainer
