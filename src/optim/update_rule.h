#pragma once
// An update rule computes new weights from gradients. Each file in src/optim/rules/ defines one.

#include <concepts>
#include <memory>
#include <string_view>

#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/primitives/packed_weight.h"
#include "trainer/base/registry.h"
#include "trainer/base/text/text.h"
#include "trainer/config/solver_spec.h"
#include "trainer/optim/hyperparams.h"

namespace trainer {

// The parameters of a run in two groups, by the iteration of their first update.
inline constexpr int kParamGroups = 2;  // from the first iteration on; from unfreeze_at on

// The lr_mult and decay_mult of one parameter, and its group.
struct ParamMultipliers {
  float lr = 1, decay = 1;
  int group = 0;
};

// The hyperparameters in the device's memory. A captured update reads them there at each replay.
struct DeviceHyperparams {
  Hyperparams values;
  float ema_keep = 0;  // the decay factor of averaged weights, see optim/ema.h
  // UpdateRule::Begin computes these from the hyperparameters, once for all weights of a group.
  double rule_terms[kParamGroups][2] = {};
};

// The part of an update that depends on all gradients together. Decide computes it
// (optim/gradient_verdict.h).
struct GradientVerdict {
  float norm = 0;  // L2 norm of the gradient's mean over the ranks, before clipping
  // Gradients are multiplied by this: the factor of the clip divided by the loss scale.
  float grad_factor = 1;
  uint32_t skip = 0;  // 1: a gradient is not finite, and the update changes no weight
  // The loss scale: see optim/loss_scaler.h.
  float loss_scale = 1;            // for the next backward pass
  uint32_t good = 0;               // updates since the loss scale changed or an update was skipped
  uint32_t skipped = 0;            // number of skipped updates since training began
  uint32_t consecutive_skips = 0;  // number of skipped updates since the last one that was not
};

enum class Larc : int { kNone, kScale, kClip };

// The arguments of an update that are the same for all parameters. They stay the same between
// updates; values that change are in the device's memory, at the addresses given here.
struct UpdateArgs {
  DeviceHyperparams* hyper = nullptr;
  float passes = 1;        // gradients are sums over this many passes: iter_size times the ranks
  bool l1 = false;         // weight decay is L1, else L2
  bool clear_grad = true;  // the update also sets gradients to zero
  bool ema = false;        // the update also updates the averages of the weights
  Larc larc = Larc::kNone;
  float larc_eta = 0;
  int groups = 1;       // 2 if parameters began to learn at unfreeze_at
  int unfreeze_at = 0;  // the iteration of their first update
  // Indexed by parameter:
  const ParamMultipliers* multipliers = nullptr;
  // Sums of squares of the weights and of the gradient; null if neither the rule nor larc needs
  // norms.
  const float *weight_squares = nullptr, *grad_squares = nullptr;
  const PackedWeight* copies = nullptr;      // weight copies that the update also writes, or null
  const GradientVerdict* verdict = nullptr;  // null: gradients are neither clipped nor scaled
};

// The parameters [first, last) of an update. The arrays of each segment are the weights, their
// gradients summed over `passes`, their averages if there are any, and StatesPerWeight() state
// arrays.
struct UpdateRange {
  const TensorList& parameters;
  int first = 0, last = 0;
  UpdateArgs args;
};

// Used by one thread.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // The number of state values per weight, 0 to 2; all start at zero. A solverstate contains the
  // first value of all parameters, then the second of all.
  virtual int StatesPerWeight() const = 0;
  // Returns true if Step reads weight_squares and grad_squares, which cost two passes over memory.
  virtual bool NeedsNorms() const { return false; }
  // Returns true if the rule reads Hyperparams::iter. If not, the host sends hyperparameters to the
  // device only when the others change.
  virtual bool CountsUpdates() const { return false; }
  // Called before the Steps of an update. Enqueues the computation of hyper->rule_terms.
  virtual void Begin(const Device& /*device*/, const UpdateArgs& /*numbers*/) {}
  // Enqueues the update of the weights and states in `range`; it also clears gradients and writes
  // averages and copies, as range.args says. UpdateWeights (update_loop.h) implements all that for
  // a formula of one weight.
  virtual void Step(const Device& device, const UpdateRange& range) = 0;
};

using UpdateRuleRegistry = Registry<UpdateRule, const SolverSpec&>;

// const RegisterUpdateRule<Sgd> kSgd("SGD");
template <class T>
using RegisterUpdateRule = Registration<UpdateRule, T, const SolverSpec&>;

// Throws kConfig if the solver sets a momentum other than 0, or a momentum policy, which `type`
// does not have.
void RefuseMomentum(const SolverSpec& spec, std::string_view type);
// Throws kConfig if the solver sets regularization_type L1, which `type` does not support.
void RefuseL1(const SolverSpec& spec, std::string_view type);

// Makes the rule that the solver's `type` names. For an unknown type throws kConfig at the line of
// `type`, with the nearest name among the rules and `others`.
std::unique_ptr<UpdateRule> MakeUpdateRule(const SolverSpec& spec,
                                           const std::vector<std::string>& others = {});

}  // namespace trainer
