#pragma once
// An optimizer computes one training step: it evaluates the objective and updates the weights.

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

// Calls from an optimizer to the solver during a step.
class StepFrame {
 public:
  virtual ~StepFrame() = default;
  // Called once per step, before any weight changes, with the loss at the present weights. The
  // solver checks, smooths and reports it and returns the step's hyperparameters. Throws kDiverged.
  virtual Hyperparams Begin(float loss) = 0;
  // Replaces Begin after Objective::Run. The solver takes the loss itself: at once if it is needed
  // now or the objective is not asynchronous, else during the next step.
  virtual Hyperparams BeginStarted() = 0;
  // Called before Objective::Run. Returns the hyperparameters that BeginStarted will return if the
  // update may be enqueued before BeginStarted, i.e. if the solver reports nothing in this step and
  // the objective is asynchronous; else nullopt.
  virtual std::optional<Hyperparams> HyperparamsAhead() { return std::nullopt; }
  // Writes a line to the log unless `text` is empty.
  virtual void Note(const std::string& text) = 0;
};

// Constructed before the net, then prepared once. Used by one thread. Step allocates nothing.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Number of floats of state per weight that the optimizer keeps on the net's device.
  virtual int StatesPerWeight() const = 0;
  // Number of further arrays, each as long as all gradients, that Prepare allocates on the net's
  // device.
  virtual int ExtraArrays() const { return 0; }
  // Whether Step evaluates a batch more than once. The net then keeps its batch, and iter_size must
  // be 1.
  virtual bool Reevaluates() const { return false; }
  // Sets the options that the training net must be compiled with for this optimizer.
  virtual void ConfigureCompile(NetOptions&) const {}
  // Allocates for `objective`, which must outlive the optimizer.
  virtual void Prepare(Objective& objective) = 0;

  // From the next step on, updates only the parameters with own[i], in the order of
  // Objective::params(); other ranks update the others. Returns false if the optimizer cannot do
  // that.
  virtual bool UpdateOnly(const std::vector<bool>& /*own*/) { return false; }
  // Updates the weights by the present gradients, without an evaluation. Requires an optimizer
  // whose UpdateOnly returns true.
  virtual void Update(Objective& /*objective*/, const Hyperparams& /*rates*/) {}

  // From the next step on, updates also update averages of the weights: see ParamUpdater::FuseEma.
  // Returns false if the optimizer cannot do that.
  virtual bool FuseEma(const std::vector<float*>& /*averages*/, float /*decay*/) { return false; }

  // Does one step: evaluates the objective, calls frame.Begin and updates the weights.
  virtual void Step(Objective& objective, StepFrame& frame) = 0;

  // Returns once a log line about the last step that was not known during that step; else "".
  virtual std::string TakeNote() { return ""; }

  // The loss scale after the last step, for reports and snapshots; nullopt if the loss is not
  // scaled.
  virtual std::optional<LossScaleState> LossScale() { return std::nullopt; }
  // Called before the first step of a resumed run. Has no effect if the loss is not scaled.
  virtual void RestoreLossScale(const LossScaleState&) {}
  // Says that from now on the gradients passed to Update are not scaled: other ranks compute them,
  // unscale them and count the updates they skip.
  virtual void ExpectUnscaled() {}

  // The state that a snapshot stores: arrays with one pointer per parameter (on the device of
  // state_store(), in the order of its weights), and a record for everything else. A resumed run
  // restores both before its first step.
  virtual const std::vector<std::vector<float*>>& state_arrays() const = 0;
  // Null: the state belongs to the store of the net's parameters.
  virtual const ParamStore* state_store() const { return nullptr; }
  virtual std::string SaveRecord() const { return ""; }
  // Throws kBadSnapshot if this optimizer did not make the record.
  virtual void LoadRecord(const std::string& state);

  // The least number of bytes that a step moves in addition to its evaluations.
  virtual size_t Bytes() const = 0;
};

// Returns the store whose device and order the optimizer's state arrays have; `net` is the store of
// the net's parameters.
inline const ParamStore& StateStore(const Optimizer& rule, const ParamStore& net) {
  return rule.state_store() == nullptr ? net : *rule.state_store();
}

using OptimizerRegistry = Registry<Optimizer, const SolverSpec&>;

// const RegisterOptimizer<Sam> kSam("SAM");
template <class T>
using RegisterOptimizer = Registration<Optimizer, T, const SolverSpec&>;

// Makes the optimizer that the solver's `type` names. The name of an update rule (src/optim/rules/)
// means the first-order optimizer with that rule. Throws kConfig for an unknown type, at its line
// and with the nearest name, and for fields that the optimizer refuses.
std::unique_ptr<Optimizer> MakeOptimizer(const SolverSpec& spec);

// Returns all names that MakeOptimizer accepts, sorted.
std::vector<std::string> OptimizerNames();

}  // namespace trainer
