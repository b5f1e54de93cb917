#pragma once
// An update rule: how a gradient moves a weight. One file in src/rules/ defines one.

#include <concepts>
#include <memory>
#include <string_view>

#include "trainer/backend/map.h"
#include "trainer/base/registry.h"
#include "trainer/base/text.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// One parameter at one iteration. All arrays are f32 on the device, `count` long.
struct ParamSlice {
  int64_t count = 0;
  float* weight = nullptr;
  float* grad = nullptr;                 // the sum over iter_size passes and replicas
  float* state[2] = {};                  // as many as StatesPerWeight()
  float rate = 0;                        // learning rate times lr_mult, or what larc puts there
  float momentum = 0;                    // of this iteration, by momentum_policy
  float grad_scale = 1;                  // what makes the mean of that sum, times a clip's factor
  float decay_l1 = 0, decay_l2 = 0;      // weight_decay times decay_mult
  bool decays = true;                    // decay_mult is not 0: no bias and no scale of a norm
  float weight_norm = 0, grad_norm = 0;  // 2-norms, of the averaged and clipped gradient without
                                         // decay; only for a rule that needs them
  bool clear_grad = true;                // set grad to zero in the same pass
  int iter = 0;                          // updates done before this one
};

// Used by one thread.
class Rule {
 public:
  virtual ~Rule() = default;
  // Numbers of state per weight, 0 to 2, all zero at the start. Their order is that of a
  // solverstate: every parameter's first, then every parameter's second.
  virtual int StatesPerWeight() const = 0;
  // Whether Step reads weight_norm and grad_norm, which cost two passes over memory.
  virtual bool NeedsNorms() const { return false; }
  virtual void Step(const Device& device, const ParamSlice& slice) = 0;
};

// The gradient a rule works on: averaged, clipped, with the weight decay's gradient added
// (L2: lambda w, L1: lambda sign w), in that order, as in Caffe.
struct Regularized {
  float grad_scale, l1, l2;
  HD float operator()(float grad, float weight) const {
    const float sign = static_cast<float>((weight > 0) - (weight < 0));
    return grad_scale * grad + l2 * weight + l1 * sign;
  }
};

namespace rule_internal {

template <class F>
struct Stateless {
  F step;
  Regularized g;
  bool clear;
  HD void operator()(float& w, float& grad) const {
    step(w, g(grad, w));
    if (clear) grad = 0;
  }
};

template <class F>
struct OneState {
  F step;
  Regularized g;
  bool clear;
  HD void operator()(float& w, float& grad, float& a) const {
    step(w, a, g(grad, w));
    if (clear) grad = 0;
  }
};

template <class F>
struct TwoStates {
  F step;
  Regularized g;
  bool clear;
  HD void operator()(float& w, float& grad, float& a, float& b) const {
    step(w, a, b, g(grad, w));
    if (clear) grad = 0;
  }
};

}  // namespace rule_internal

// Runs step(w, [state...], g) for every weight in one pass over memory, with g regularised and the
// gradient cleared on the way.
template <int kStates, class F>
void UpdateWeights(const Device& device, const ParamSlice& p, F step) {
  const Regularized g{p.grad_scale, p.decay_l1, p.decay_l2};
  if constexpr (kStates == 0) {
    Update(device, rule_internal::Stateless<F>{step, g, p.clear_grad}, p.count, p.weight, p.grad);
  } else if constexpr (kStates == 1) {
    Update(device, rule_internal::OneState<F>{step, g, p.clear_grad}, p.count, p.weight, p.grad,
           p.state[0]);
  } else {
    Update(device, rule_internal::TwoStates<F>{step, g, p.clear_grad}, p.count, p.weight, p.grad,
           p.state[0], p.state[1]);
  }
}

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
