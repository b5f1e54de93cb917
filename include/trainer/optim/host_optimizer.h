#pragma once
// Optimizer offload: the net computes on another device, and the host updates the weights.

#include <memory_resource>
#include <optional>

#include "trainer/net/param_store.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/update_rule.h"

namespace trainer {

// The net's device computes the gradients of a new batch, then the CPU applies the update rule. The
// weights and the rule's state are in host memory; the net has a copy of the weights. Step does not
// change that copy: call PullWeights once all ranks have updated their parameters.
class HostOptimizer final : public Optimizer {
 public:
  // Weights and state are allocated from `memory`. If ranks share it, all of them must make the
  // same calls. `spec` and `memory` must outlive the object.
  HostOptimizer(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule,
                std::pmr::memory_resource& memory);

  // PushWeights copies the net's weights to the host; PullWeights copies the host's to the net.
  void PushWeights();
  void PullWeights();

  int StatesPerWeight() const override { return 0; }  // the state is in host memory
  // Throws kUnavailable if the net's loss must be scaled.
  void Prepare(Objective& objective) override;
  void Step(Objective& objective, StepFrame& frame) override;
  void Update(Objective& objective, const Hyperparams& hyper) override;
  bool UpdateOnly(const std::vector<bool>& own) override;
  std::string TakeNote() override { return update_->TakeNote(); }
  const std::vector<std::vector<float*>>& state_arrays() const override {
    return update_->state_arrays();
  }
  const ParamStore* state_store() const override { return &*store_; }
  size_t Bytes() const override { return update_->Bytes(); }

 private:
  // A parameter with a gradient: in the net, and its copy in host memory.
  struct Pair {
    Param *net, *host;
    size_t number;    // index in params_
    bool own = true;  // this rank updates it
  };

  const SolverSpec& spec_;
  std::unique_ptr<UpdateRule> rule_;  // moved into update_ by Prepare
  std::pmr::memory_resource& memory_;
  const Device* net_device_ = nullptr;
  std::unique_ptr<Device> host_;
  std::optional<ParamStore> store_;
  std::vector<Param*> params_;  // host copies of Objective::params(), in that order
  std::vector<Pair> learned_;
  std::optional<ParamUpdater> update_;
};

}  // namespace trainer
