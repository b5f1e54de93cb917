#pragma once
// A step whose update is made on the host, for a net that another device computes.

#include <memory_resource>
#include <optional>

#include "trainer/net/param_store.h"
#include "trainer/rules/rule.h"
#include "trainer/steps/step_rule.h"

namespace trainer {

// One evaluation on a new batch by the net's device, then the update rule on the processor: weights
// and the rule's state lie in memory of the host, and the net has a copy of the weights. Step
// leaves that copy as it was; TakeWeights brings it up to date, when all ranks have moved their
// share.
class HostStep final : public StepRule {
 public:
  // The numbers lie in `memory`, which ranks may share: all of them then make the same calls.
  // `spec` and `memory` must outlive the object.
  HostStep(const SolverSpec& spec, std::unique_ptr<Rule> rule, std::pmr::memory_resource& memory);

  // The net's weights become those of the host, and the other way.
  void GiveWeights();
  void TakeWeights();

  int StatesPerWeight() const override { return 0; }  // on the net's device
  // Throws kUnavailable for a net whose loss has to be scaled.
  void Prepare(Objective& objective) override;
  void Step(Objective& objective, StepFrame& frame) override;
  void ApplyGradients(Objective& objective, const UpdateRates& rates) override;
  bool SetShare(const std::vector<bool>& own) override;
  std::string TakeNote() override { return update_->TakeNote(); }
  const std::vector<std::vector<float*>>& history() const override { return update_->history(); }
  const ParamStore* history_store() const override { return &*store_; }
  size_t Bytes() const override { return update_->Bytes(); }

 private:
  // Of a parameter that learns.
  struct Pair {
    Param *net, *host;
    size_t number;    // among all
    bool own = true;  // this rank's to move
  };

  const SolverSpec& spec_;
  std::unique_ptr<Rule> rule_;  // until it is the update's
  std::pmr::memory_resource& memory_;
  const Device* net_device_ = nullptr;
  std::unique_ptr<Device> host_;
  std::optional<ParamStore> store_;
  std::vector<Param*> params_;  // as the objective has them
  std::vector<Pair> learned_;
  std::optional<WeightUpdate> update_;
};

}  // namespace trainer
