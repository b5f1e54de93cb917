#pragma once
// An update rule: how a gradient moves a weight. One file in src/rules/ defines one.

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
struct ParamMults {
  float lr = 1, decay = 1;
};

// What the solver's policies say of one update.
struct UpdateRates {
  int iter = 0;  // updates done before this one
  float rate = 0, momentum = 0, weight_decay = 0;
  bool operator==(const UpdateRates&) const = default;
};

// What differs from update to update and is known before it. It is in the device's memory, so that
// an update can be recorded and played again.
struct RateWords {
  UpdateRates rates;
  float keep = 0;          // what running averages keep of themselves, see rules/average.h
  double of_rule[2] = {};  // what Rule::Begin makes of the rates, once for all weights
};

// What all gradients together say of an update, found by Decide (rules/decide.h).
struct UpdateWords {
  float norm = 0;         // of the mean gradient over the replicas, before it is clipped
  float grad_factor = 1;  // what gradients are multiplied with: the clip's over the loss's
  uint32_t skip = 0;      // 1: a gradient is not finite, nothing moves
  // The loss scale: see steps/loss_scale.h.
  float loss_scale = 1;   // of the next backward pass
  uint32_t good = 0;      // updates since it changed or one was skipped
  uint32_t skipped = 0;   // updates since training began
  uint32_t in_a_row = 0;  // of them, the last ones
};

enum class Larc : int { kNone, kScale, kClip };

// An update, as far as it is the same for all parameters. The same in every update: what differs
// is where the pointers lead, in the device's memory.
struct UpdateNumbers {
  RateWords* now = nullptr;
  float passes = 1;        // that gradients are sums over: iter_size times the replicas
  bool l1 = false;         // the decay is that of the sum of absolute values
  bool clear_grad = true;  // set gradients to zero in the same pass
  bool averages = false;   // weights have running averages, which follow in the same pass
  Larc larc = Larc::kNone;
  float larc_eta = 0;
  // By parameter:
  const ParamMults* mults = nullptr;
  // Sums of squares of its weights and its gradient; null where neither the rule nor larc needs
  // norms.
  const float *weight_squares = nullptr, *grad_squares = nullptr;
  const PackedWeight* copies = nullptr;  // which the update writes, too; null: none
  const UpdateWords* words = nullptr;    // null: gradients are neither clipped nor scaled
};

// Some parameters of an update: those of [first, last). The arrays of a segment are the weights,
// the sum of their gradients over `passes`, their running averages where there are any, and as many
// states as StatesPerWeight().
struct UpdatePart {
  const TensorList& parameters;
  int first = 0, last = 0;
  UpdateNumbers numbers;
};

// Used by one thread.
class Rule {
 public:
  virtual ~Rule() = default;
  // Numbers of state per weight, 0 to 2, all zero at the start. Their order is that of a
  // solverstate: every parameter's first, then every parameter's second.
  virtual int StatesPerWeight() const = 0;
  // Whether Step reads weight_squares and grad_squares, which cost two passes over memory.
  virtual bool NeedsNorms() const { return false; }
  // Whether it goes by UpdateRates::iter.
  virtual bool CountsUpdates() const { return false; }
  // Before the Steps of an update: queues what makes now->of_rule.
  virtual void Begin(const Device& /*device*/, const UpdateNumbers& /*numbers*/) {}
  virtual void Step(const Device& device, const UpdatePart& part) = 0;
};

using RuleRegistry = Registry<Rule, const SolverSpec&>;

// const RegisterRule<Sgd> kSgd("SGD");
template <class T>
struct RegisterRule {
  explicit RegisterRule(const char* type) {
    RuleRegistry::Get().Add(
        type, [](const SolverSpec& spec) { return std::unique_ptr<Rule>(new T(spec)); });
  }
};

// Throws kConfig when the solver sets a momentum: `type` has none.
void RefuseMomentum(const SolverSpec& spec, std::string_view type);
// Throws kConfig when the solver asks for L1: `type` defines its decay for L2 alone.
void RefuseL1(const SolverSpec& spec, std::string_view type);

// Makes the rule of the solver's `type`, or throws kConfig at its line naming the nearest type, of
// the rules and of `others`.
std::unique_ptr<Rule> MakeRule(const SolverSpec& spec, const std::vector<std::string>& others = {});

}  // namespace trainer
