#pragma once
// What the rules share: one pass over weights, gradients and states. Only files of this module
// include it; it holds device code, see map.h.

#include "trainer/backend/map.h"
#include "trainer/rules/rule.h"

namespace trainer {

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

}  // namespace trainer
