#pragma once
// An optimizer computes one training step: it evaluates the objective and updates the weights.

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/registry.h"
#include "trainer/config/solver_spec.h"
#include "trainer/optim/hyperparams.h"
#include "trainer/optim/objective.h"

namespace trainer {

// Takes a line for the log; an empty one is not logged.
using NoteHandler = std::function<void(const std::string& line)>;

// The part of a loss scale's state that a snapshot stores.
struct LossScaleState {
  float factor = 1;
  uint32_t good = 0;
  uint64_t skipped = 0;
};

// Constructed before the net, then prepared once; used by one thread. A step is ComputeGradients,
// TakeLoss and Update, with equal hyperparameters; it allocates nothing.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Number of floats of state per weight that the optimizer keeps on the net's device.
  virtual int StatesPerWeight() const = 0;
  // Number of further arrays, each as long as all gradients, that Prepare allocates on the net's
  // device.
  virtual int ExtraArrays() const { return 0; }
  // Returns true if a step evaluates the same batch more than once. The net then keeps its batch,
  // iter_size must be 1, and the loss of a step is taken before its update.
  virtual bool Reevaluates() const { return false; }
  // Sets the options that the training net must be compiled with for this optimizer.
  virtual void ConfigureCompile(NetOptions&) const {}
  // Allocates for `objective`, which must outlive the optimizer. Lines for the log go to `on_note`.
  virtual void Prepare(Objective& objective, NoteHandler on_note) = 0;

  // Evaluates the objective on a new batch at the present weights, without waiting for the loss if
  // Objective::IsAsync(). `fused`: queues the update by `hyper` after the last pass, which requires
  // IsAsync(); Update must then follow before the next ComputeGradients.
  virtual void ComputeGradients(const Hyperparams& hyper, bool fused) = 0;
  // Returns the loss of the oldest ComputeGradients whose loss was not taken, at the weights before
  // the update. At most Objective::kMaxInFlight may be in flight.
  virtual float TakeLoss() = 0;
  // Updates the weights by the present gradients. An optimizer for which UpdateOnly returns true
  // may be called without ComputeGradients before it.
  virtual void Update(const Hyperparams& hyper) = 0;
  // Passes the log lines about the last update (it clipped, it was skipped) to the NoteHandler,
  // once. Without `wait`, lines that the host would have to wait for are left to a later call.
  // Update emits nothing itself if UpdateOnly returns true: dedicated servers call it for the
  // gradients of workers, which log them.
  virtual void EmitNotes(bool /*wait*/) {}

  // From the next step on updates only the parameters with own[i], in the order of
  // Objective::params(); other ranks update the others. `unscaled`: the gradients of Update are not
  // scaled from now on, because other ranks have computed and unscaled them and have counted the
  // updates that they skipped. Returns false if the optimizer cannot.
  virtual bool UpdateOnly(const std::vector<bool>& /*own*/, bool /*unscaled*/) { return false; }

  // From the next step on, updates also move averages of the weights, with the decay factor
  // EmaKeep(decay, ...). The averages are on the device, in the order of Objective::params(), and
  // must outlive the optimizer; the pointer of a parameter that is not updated is null. Returns
  // false if the optimizer cannot do that.
  virtual bool FuseEma(const std::vector<float*>& /*averages*/, float /*decay*/) { return false; }

  // The loss scale after the last step, for reports and snapshots; nothing if the loss is not
  // scaled.
  virtual std::optional<LossScaleState> LossScale() { return std::nullopt; }
  // Called before the first step of a resumed run. Has no effect if the loss is not scaled.
  virtual void RestoreLossScale(const LossScaleState&) {}

  // The state that a snapshot stores: arrays with one pointer per parameter (on the device of
  // state_store(), in the order of its weights), and a record for everything else. A resumed run
  // restores both before its first step.
  virtual const std::vector<std::vector<float*>>& state_arrays() const = 0;
  // Null: the state belongs to the store of the net's parameters.
  virtual const ParamStore* state_store() const { return nullptr; }
  // Returns the record: bytes that only this type of optimizer reads; "" if it needs none.
  virtual std::string SaveRecord() const { return ""; }
  // Restores a record. Throws kBadSnapshot if this optimizer did not make it; the default accepts
  // "" only.
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
