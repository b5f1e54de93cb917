#pragma once
// Applies the loss scale and the clipping of gradients, which the device decides
// (optim/gradient_verdict.h).

#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "gradient_verdict.h"
#include "trainer/optim/optimizer.h"

namespace trainer {

// How the loss is scaled: the gradient of the loss is multiplied by a factor, so that all gradients
// stay within the range of a narrow type, and the gradients of parameters are divided by that
// factor. Source: Micikevicius et al., arXiv:1710.03740, sections 3.2 and 4.
struct LossScaleOptions {
  float factor = 65536;    // the initial factor
  bool fixed = false;      // the factor never changes
  uint32_t window = 2000;  // updates in a row without a skip, after which the factor is doubled
};

// One object per run, used by one thread. On an asynchronous device call Last() when the next
// update begins: the verdict has arrived by then, so that the host does not wait for later work.
class LossScaler {
 public:
  // `clip`: see VerdictRules. Allocates on the device, which must outlive the object.
  LossScaler(const Device& device, float clip, const std::optional<LossScaleOptions>& scale);

  // Enqueues the decision about gradients whose sum of squares is *squares. Enqueues the same
  // kernel each time, so that a device can capture it.
  void Decide(const float* squares, int ranks);
  // Called after each Decide, with the number of the update: starts the copy of the verdict to the
  // host. Throws kDiverged if 50 consecutive updates before this one were skipped.
  void Read(int iter);

  // Address on the device.
  const GradientVerdict* verdict() const { return verdict_; }
  // Address on the device; null without a loss scale.
  const float* loss_scale() const { return scale_ ? &verdict_->loss_scale : nullptr; }

  // Returns the last verdict; waits until it has arrived.
  const GradientVerdict& Last();
  // Returns a log line if the last update was clipped or skipped, once; else "".
  std::string TakeNote();

  // Returns the state after the last update; waits for its verdict. Requires a loss scale.
  LossScaleState State();
  // Sets the state of a snapshot, except the factor if it is fixed. Requires a loss scale.
  void Restore(const LossScaleState& state);
  // From the next verdict on, gradients are not scaled. Resets the count of skipped updates.
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
  bool decided_ = false, told_ = true;   // last_ has not arrived; TakeNote has reported last_
  std::unique_ptr<AsyncReadback> read_;  // declared last, so that it ends before arriving_ is freed
};

}  // namespace trainer
