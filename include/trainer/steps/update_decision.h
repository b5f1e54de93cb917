#pragma once
// What the host knows of the words in which the device decides about updates (rules/decide.h).

#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "trainer/rules/decide.h"

namespace trainer {

// How gradients are scaled: the loss's gradient is multiplied by a factor, so that the gradients
// before it keep within the range of a narrow type, and parameters' gradients are divided by it.
// Source: Micikevicius and others, arXiv:1710.03740, sections 3.2 and 4.
struct LossScaleOptions {
  float factor = 65536;    // at first
  bool fixed = false;      // it stays
  uint32_t window = 2000;  // updates without one skipped after which it is doubled
};

// What a run must keep of a factor.
struct LossScaleState {
  float factor = 1;
  uint32_t good = 0;
  uint64_t skipped = 0;
};

// Made once for a run. Where the device runs later, what it decided of an update is known when
// Last() is called, at best when the next update begins: the host then waits for nothing that was
// queued meanwhile. Used by one thread.
class UpdateDecision {
 public:
  // `clip`: as DecideRules. Allocates on the device, which must outlive the object.
  UpdateDecision(const Device& device, float clip, const std::optional<LossScaleOptions>& scale);

  // Queues the decision about gradients of which *squares is the sum of squares. The same each
  // time, so that a device may record it.
  void Decide(const float* squares, int replicas);
  // After each decision, that of update `iter`, and before the next: starts its way to the host.
  // Throws kDiverged when too many updates before it were skipped.
  void Read(int iter);

  // On the device.
  const UpdateWords* words() const { return words_; }
  // Null without a loss scale.
  const float* loss_scale() const { return scale_ ? &words_->loss_scale : nullptr; }

  // What was decided last.
  const UpdateWords& Last();
  // What there is to tell of it, once: that it clipped, that it was skipped; else "".
  std::string TakeNote();

  // Of a run with a loss scale.
  LossScaleState State();
  void Restore(const LossScaleState& state);
  // From the next decision on gradients are not scaled, and no update was skipped.
  void EndScaling();

 private:
  struct Free {
    const Device* device;
    void operator()(void* memory) const { device->Free(memory); }
  };

  const Device& device_;
  DecideRules rules_;
  std::optional<LossScaleOptions> scale_;
  std::unique_ptr<void, Free> memory_;
  UpdateWords* words_;
  std::pmr::vector<UpdateWords> arriving_;
  UpdateWords last_;
  int iter_ = 0;
  bool decided_ = false, told_ = true;   // about the last one: in last_, by TakeNote
  std::unique_ptr<AsyncReadback> read_;  // last: ends before arriving_ does
};

}  // namespace trainer
