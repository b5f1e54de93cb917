#pragma once

namespace trainer {

// The divisor of a loss that is a mean over labels whose number differs between batches, because
// of ignore_label or class_weight. An update of several passes (iter_size) equals the update of one
// batch with all their records only if each pass divides by the labels of all passes so far and the
// gradients of the earlier passes are multiplied by ScaleOfEarlier.
class LabelCount {
 public:
  virtual ~LabelCount() = default;
  // Returns true if the number of labels that count can differ between batches. If false, each pass
  // may divide alone, and the calls below are not made.
  virtual bool Varies() const = 0;
  // Called before the forward pass `pass` (0-based) of an update of `passes` passes.
  virtual void BeginPass(int pass, int passes) = 0;
  // Returns the factor for the gradients of the earlier passes of this update. Called after a
  // forward pass whose `pass` is not 0.
  virtual float ScaleOfEarlier() const = 0;
};

}  // namespace trainer
