#pragma once
// An optimizer: what one training step does with the objective.

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/registry.h"
#include "trainer/config/solver_spec.h"
#include "trainer/optim/objective.h"
#include "trainer/optim/param_updater.h"

namespace trainer {

// Calls from an optimizer back to the solver, in mid-step.
class StepFrame {
 public:
  virtual ~StepFrame() = default;
  // Called once in a step, before any weight changes, with the loss at the present weights. The
  // solver checks, smooths and reports it and returns the step's hyperparameters. Throws kDiverged.
  virtual Hyperparams Begin(float loss) = 0;
  // The same after Objective::Run, whose loss the solver takes: at once if it is needed now or the
  // objective is not asynchronous, else during the next step.
  virtual Hyperparams BeginStarted() = 0;
  // Returns the hyperparameters that BeginStarted will return, if the update may be queued before
  // BeginStarted: the solver reports nothing in this step and the objective is asynchronous. Else
  // returns nullopt. Called before Objective::Run.
  virtual std::optional<Hyperparams> HyperparamsAhead() { return std::nullopt; }
  // A line for the log, unless empty.
  virtual void Note(const std::string& text) = 0;
};

// Constructed before the net, then prepared once; used by one thread. Step allocates nothing.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Floats of state per weight that the optimizer holds on the net's device.
  virtual int StatesPerWeight() const = 0;
  // Further arrays, each as long as all gradients, that Prepare allocates on the net's device.
  virtual int ExtraArrays() const { return 0; }
  // Whether Step evaluates the same batch more than once. The net then keeps its batch, and
  // iter_size must be 1.
  virtual bool Reevaluates() const { return false; }
  // Sets the options that the training net must be built with for this optimizer.
  virtual void ConfigureCompile(NetOptions&) const {}
  // Allocates for `objective`, which must outlive the optimizer.
  virtual void Prepare(Objective& objective) = 0;

  // From the next step on updates only the parameters with own[i], in the order of
  // Objective::params(); other ranks update the others. Returns false if the optimizer cannot.
  virtual bool UpdateOnly(const std::vector<bool>& /*own*/) { return false; }
  // Updates the weights by the present gradients, without an evaluation. For an optimizer for which
  // UpdateOnly returns true.
  virtual void Update(Objective& /*objective*/, const Hyperparams& /*rates*/) {}

  // From the next step on updates also move averages of the weights, as ParamUpdater::FuseEma does.
  // Returns false if the optimizer cannot.
  virtual bool FuseEma(const std::vector<float*>& /*averages*/, float /*decay*/) { return false; }

  // One step: evaluates the objective, calls frame.Begin and updates the weights.
  virtual void Step(Objective& objective, StepFrame& frame) = 0;

  // A line for the log about the last step that was not known in it, returned once; else "".
  virtual std::string TakeNote() { return ""; }

  // The loss scale after the last step, for reports and snapshots; nothing if the loss is not
  // scaled.
  virtual std::optional<LossScaleState> LossScale() { return std::nullopt; }
  // Called before the first step of a resumed run. Without effect if the loss is not scaled.
  virtual void RestoreLossScale(const LossScaleState&) {}
  // Says that the gradients of Update are not scaled from now on: other ranks have computed and
  // unscaled them and have counted the updates that they skipped.
  virtual void ExpectUnscaled() {}

  // What a snapshot holds of the optimizer: arrays, each as one pointer per parameter (on the
  // device of state_store(), in the order of its weights), and a record for everything else. A
  // resumed run sets both before its first step.
  virtual const std::vector<std::vector<float*>>& state_arrays() const = 0;
  // Null: the store of the net's parameters.
  virtual const ParamStore* state_store() const { return nullptr; }
  virtual std::string SaveRecord() const { return ""; }
  // Throws kBadSnapshot for a record that it did not make.
  virtual void LoadRecord(const std::string& state);

  // The least number of bytes that a step moves in addition to its evaluations.
  virtual size_t Bytes() const = 0;
};

// The store whose device and order the optimizer's state arrays have; `net`: the store of the net's
// parameters.
inline const ParamStore& StateStore(const Optimizer& rule, const ParamStore& net) {
  return rule.state_store() == nullptr ? net : *rule.state_store();
}

using OptimizerRegistry = Registry<Optimizer, const SolverSpec&>;

// const RegisterOptimizer<Sam> kSam("SAM");
template <class T>
using RegisterOptimizer = Registration<Optimizer, T, const SolverSpec&>;

// The optimizer that the solver's `type` names. The name of an update rule (src/optim/rules/)
// stands for the first-order optimizer with that rule. Throws kConfig at the line of an unknown
// type, with the nearest name, and of fields that the optimizer refuses.
std::unique_ptr<Optimizer> MakeOptimizer(const SolverSpec& spec);

// All names that MakeOptimizer takes, sorted.
std::vector<std::string> OptimizerNames();

}  // namespace trainer
