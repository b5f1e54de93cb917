#pragma once
// A step rule: what one training step does with the objective. One file in src/steps/ defines one.

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/registry.h"
#include "trainer/config/solver_spec.h"
#include "trainer/steps/objective.h"
#include "trainer/steps/weight_update.h"

namespace trainer {

// The solver's side of one step.
class StepFrame {
 public:
  virtual ~StepFrame() = default;
  // To be called once in a step, with the loss that it starts from, before any weight changes:
  // checks, smooths and reports it. Returns what the policies say of this step. Throws kDiverged.
  virtual UpdateRates Begin(float loss) = 0;
  // The same after Objective::Start, whose loss the solver takes: at once where it is asked for now
  // or the objective does not run ahead, else while the next step runs.
  virtual UpdateRates BeginStarted() = 0;
  // What BeginStarted will return, where weights may change before it is called: nobody looks at
  // anything of this step before, and the objective runs ahead. Asked before Objective::Start.
  virtual std::optional<UpdateRates> RatesAhead() { return std::nullopt; }
  // A line for the log, unless empty.
  virtual void Note(const std::string& text) = 0;
};

// Made before the net, then prepared once; used by one thread. Step allocates nothing.
class StepRule {
 public:
  virtual ~StepRule() = default;

  // Floats of state per weight on the net's device.
  virtual int StatesPerWeight() const = 0;
  // Arrays as long as all gradients that Prepare takes on the net's device besides those states.
  virtual int ExtraArrays() const { return 0; }
  // Whether Step evaluates the objective again on the same batch. The net then keeps its batch, and
  // iter_size must be 1.
  virtual bool EvaluatesAgain() const { return false; }
  // Sets what the training net must know of the rule before it is built.
  virtual void Adapt(NetOptions&) const {}
  // Takes memory for `objective`, which outlives the rule.
  virtual void Prepare(Objective& objective) = 0;

  // From the next step on only the parameters with own[i] are moved, by the order of
  // Objective::params(): other ranks move the others. False where the rule cannot.
  virtual bool SetShare(const std::vector<bool>& /*own*/) { return false; }
  // The last part of a step alone: moves the weights by the gradients that are there. For a rule
  // that takes a share.
  virtual void ApplyGradients(Objective& /*objective*/, const UpdateRates& /*rates*/) {}

  // From the next step on the rule's updates also move running averages of the weights, as
  // WeightUpdate::KeepAverages. False where the rule cannot.
  virtual bool KeepAverages(const std::vector<float*>& /*averages*/, float /*decay*/) {
    return false;
  }

  // One step: evaluates the objective as often as it likes, calls frame.Begin, moves the weights.
  virtual void Step(Objective& objective, StepFrame& frame) = 0;

  // What there is to log of the last step and was not known in it, once; else "".
  virtual std::string TakeNote() { return ""; }

  // Where the rule scales the loss: the factor as the last step left it, for reports and snapshots.
  virtual std::optional<LossScaleState> LossScale() { return std::nullopt; }
  // Before the first step of a run that goes on; without effect where the loss is not scaled.
  virtual void RestoreLossScale(const LossScaleState&) {}
  // What ApplyGradients gets from now on is not scaled: other ranks have made and divided it, and
  // have counted what they skipped.
  virtual void ExpectUnscaled() {}

  // What a snapshot holds of the rule: arrays, each as one pointer per parameter (on the device of
  // history_store(), in the order of its weights), and a record of its own for all else. They are
  // filled and set before the first step of a run that goes on.
  virtual const std::vector<std::vector<float*>>& history() const = 0;
  // Null: that of the net's parameters.
  virtual const ParamStore* history_store() const { return nullptr; }
  virtual std::string SaveState() const { return ""; }
  // Throws kBadSnapshot for a record that it did not make.
  virtual void RestoreState(const std::string& state);

  // Bytes that a step moves at least beside its evaluations.
  virtual size_t Bytes() const = 0;
};

// Whose device and orders the rule's history has, in a run whose net has the parameters of `net`.
inline const ParamStore& HistoryStore(const StepRule& rule, const ParamStore& net) {
  return rule.history_store() == nullptr ? net : *rule.history_store();
}

using StepRuleRegistry = Registry<StepRule, const SolverSpec&>;

// const RegisterStepRule<Sam> kSam("SAM");
template <class T>
struct RegisterStepRule {
  explicit RegisterStepRule(const char* type) {
    StepRuleRegistry::Get().Add(
        type, [](const SolverSpec& spec) { return std::unique_ptr<StepRule>(new T(spec)); });
  }
};

// The step rule that the solver's `type` names. An update rule (src/rules/) stands for the step
// that evaluates once and applies it. Throws kConfig at its line: an unknown type, with the nearest
// name; fields that the rule refuses.
std::unique_ptr<StepRule> MakeStepRule(const SolverSpec& spec);

// All names that MakeStepRule takes, sorted.
std::vector<std::string> StepRuleNames();

}  // namespace trainer
