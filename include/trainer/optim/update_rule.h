#pragma once
// An update rule: how a gradient moves a weight. Each file in src/optim/rules/ defines one.

#include <concepts>
#include <memory>
#include <string_view>

#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/primitives/packed_weight.h"
#include "trainer/base/registry.h"
#include "trainer/base/text/text.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The multipliers of one parameter.
struct ParamMultipliers {
  float lr = 1, decay = 1;
};

// The hyperparameters of one update, as the solver's policies set them.
struct Hyperparams {
  int iter = 0;  // updates done before this one
  float lr = 0, momentum = 0, weight_decay = 0;
  bool operator==(const Hyperparams&) const = default;
};

// The hyperparameters in the device's memory. A recorded update reads them from there whenever it
// is replayed.
struct DeviceHyperparams {
  Hyperparams values;
  float ema_keep = 0;  // the decay factor of averaged weights, see optim/ema.h
  double rule_terms[2] =
      {};  // what UpdateRule::Begin computes from the hyperparameters, once for all weights
};

// What an update needs to know about all gradients together. Decide computes it
// (optim/gradient_verdict.h).
struct GradientVerdict {
  float norm = 0;  // of the gradient's mean over the ranks, before it is clipped
  float grad_factor =
      1;  // gradients are multiplied by this: the clip's factor divided by the loss scale
  uint32_t skip = 0;  // 1: a gradient is not finite, nothing moves
  // The loss scale: see optim/loss_scale.h.
  float loss_scale = 1;            // of the next backward pass
  uint32_t good = 0;               // updates since the loss scale changed or an update was skipped
  uint32_t skipped = 0;            // updates since training began
  uint32_t consecutive_skips = 0;  // those since the last update that was not skipped
};

enum class Larc : int { kNone, kScale, kClip };

// The arguments of an update that are the same for all parameters. They do not change between
// updates; what changes is in the device's memory, to which they point.
struct UpdateArgs {
  DeviceHyperparams* hyper = nullptr;
  float passes = 1;        // gradients are sums over so many passes: iter_size times the ranks
  bool l1 = false;         // weight decay is L1
  bool clear_grad = true;  // set gradients to zero in the same pass
  bool ema = false;        // weights have averages, which the update moves in the same pass
  Larc larc = Larc::kNone;
  float larc_eta = 0;
  // By parameter:
  const ParamMultipliers* multipliers = nullptr;
  // Sums of the squares of its weights and its gradient; null if neither the rule nor larc needs
  // norms.
  const float *weight_squares = nullptr, *grad_squares = nullptr;
  const PackedWeight* copies = nullptr;      // copies that the update writes, too; null: none
  const GradientVerdict* verdict = nullptr;  // null: gradients are neither clipped nor scaled
};

// The parameters [first, last) of an update. The arrays of a segment are the weights, the sum of
// their gradients over `passes`, their averages if there are any, and StatesPerWeight() arrays of
// state.
struct UpdateRange {
  const TensorList& parameters;
  int first = 0, last = 0;
  UpdateArgs args;
};

// Used by one thread.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Numbers of state per weight, 0 to 2, all zero at the start. A solverstate has the first number
  // of all parameters, then the second of all.
  virtual int StatesPerWeight() const = 0;
  // Whether Step reads weight_squares and grad_squares, which cost two passes over memory.
  virtual bool NeedsNorms() const { return false; }
  // Whether the rule reads Hyperparams::iter.
  virtual bool CountsUpdates() const { return false; }
  // Called before the Steps of an update. Queues what computes hyper->rule_terms.
  virtual void Begin(const Device& /*device*/, const UpdateArgs& /*numbers*/) {}
  virtual void Step(const Device& device, const UpdateRange& range) = 0;
};

using UpdateRuleRegistry = Registry<UpdateRule, const SolverSpec&>;

// const RegisterUpdateRule<Sgd> kSgd("SGD");
template <class T>
using RegisterUpdateRule = Registration<UpdateRule, T, const SolverSpec&>;

// Throws kConfig when the solver sets a momentum: `type` has none.
void RefuseMomentum(const SolverSpec& spec, std::string_view type);
// Throws kConfig when the solver asks for L1: `type` defines its decay for L2 alone.
void RefuseL1(const SolverSpec& spec, std::string_view type);

// Makes the rule of the solver's `type`, or throws kConfig at its line naming the nearest type, of
// the rules and of `others`.
std::unique_ptr<UpdateRule> MakeUpdateRule(const SolverSpec& spec,
                                           const std::vector<std::string>& others = {});

}  // namespace trainer
