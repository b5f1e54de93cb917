#pragma once
// One update of all parameters: clipping, schedules, local rates, the rule.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/param_store.h"
#include "trainer/rules/rule.h"

namespace trainer {

// Used by one thread. Allocates in its constructor only.
class WeightUpdate {
 public:
  // `gradients` is the memory of all gradients of `params`, with zeros between them. All arguments
  // must outlive the object. The rule's state begins at zero.
  WeightUpdate(const SolverSpec& spec, std::unique_ptr<Rule> rule, const Device& device,
               const std::vector<Param*>& params, std::span<float> gradients);

  // Update number `iter` (counted from 0) at learning rate `rate`: the gradients are the sum of
  // iter_size passes and are zero afterwards. In Caffe's order: the norm over all parameters is
  // clipped, the sum becomes a mean, the decay is added, the rule moves the weights. Returns what
  // to log when it clipped, else "".
  std::string Apply(int iter, float rate);

  // Per state kind, per parameter, on the device; a parameter's state has the order of its weights.
  const std::vector<std::vector<float*>>& history() const { return history_; }

  // The L2 norm of numbers that lie on the device.
  float Norm(std::span<const float> values) const;

  // Bytes that Apply moves at least: weights and states are read and written, gradients read and
  // set to zero.
  size_t Bytes() const;

 private:
  struct FreeOnDevice {
    const Device* device;
    void operator()(void* block) const { device->Free(block); }
  };

  float* Allocate(size_t floats);
  float ClipFactor(std::string* note);
  float LocalRate(const ParamSlice& slice, float rate, float lr_mult) const;

  const caffe::SolverParameter& proto_;
  std::unique_ptr<Rule> rule_;
  const Device& device_;
  std::vector<Param*> params_;
  std::span<float> gradients_;
  std::vector<std::vector<float*>> history_;
  std::vector<std::unique_ptr<void, FreeOnDevice>> blocks_;  // the memory of history_ and norm_
  float* norm_ = nullptr;                                    // one float on the device
};

}  // namespace trainer
