#pragma once
// The loop that all update rules share: one pass over weights, gradients and states. Only files of
// this module include it, because it contains device code (see map.h).

#include <cmath>
#include <type_traits>

#include "ema_blend.h"
#include "trainer/backend/loops/multi_tensor.h"
#include "update_rule.h"

namespace trainer {

// The hyperparameters of one parameter in one update.
struct ParamHyperparams {
  float lr = 0;  // the global rate times lr_mult; with larc, see LocalLr
  float momentum = 0;
  float grad_scale = 1;              // turns the sum of gradients into their clipped mean
  float decay_l1 = 0, decay_l2 = 0;  // weight_decay times decay_mult
  bool decays = true;  // false if decay_mult is 0, as for biases and the scales of normalizations
  // The L2 norms of the weights and of the clipped mean gradient before weight decay is added. Set
  // only if the rule or larc needs norms.
  float weight_norm = 0, grad_norm = 0;
  int group = 0;  // of the parameter, see kParamGroups
};

// Returns the learning rate of one parameter: the global rate times lr_mult. With NVIDIA Caffe's
// larc,
//   local = (1 - momentum) * larc_eta * |w| / |g|, or 1 where a norm is 0,
// replaces a positive lr_mult; the rate is lr * local (kScale) or min(lr, local) (kClip). g is the
// averaged and clipped gradient without decay. Source: Ginsburg, Gitman and You, "Large batch
// training of convolutional networks with layer-wise adaptive rate scaling", 2018.
HD float LocalLr(const UpdateArgs& u, const ParamHyperparams& r, float lr_mult) {
  const float lr = u.hyper->values.lr;
  if (u.larc == Larc::kNone) return lr * lr_mult;
  float local = lr_mult;
  if (lr_mult > 0) {
    const bool known = r.weight_norm > 0 && r.grad_norm > 0;
    local = known ? (1 - r.momentum) * u.larc_eta * r.weight_norm / r.grad_norm : 1;
  }
  if (u.larc == Larc::kScale) return lr * local;
  return local < lr ? local : lr;
}

// Returns the hyperparameters of parameter number `parameter`, from the device's memory.
HD ParamHyperparams ParamHyperparamsOf(const UpdateArgs& u, int parameter) {
  const ParamMultipliers multipliers = u.multipliers[parameter];
  const float decay = u.hyper->values.weight_decay * multipliers.decay;
  ParamHyperparams r;
  r.momentum = u.hyper->values.momentum;
  r.group = multipliers.group;
  r.grad_scale = (u.verdict == nullptr ? 1.0f : u.verdict->grad_factor) / u.passes;
  r.decays = multipliers.decay != 0;
  r.decay_l1 = u.l1 ? decay : 0;
  r.decay_l2 = u.l1 ? 0 : decay;
  if (u.weight_squares != nullptr) {
    r.weight_norm = sqrtf(u.weight_squares[parameter]);
    r.grad_norm = r.grad_scale * sqrtf(u.grad_squares[parameter]);
  }
  r.lr = LocalLr(u, r, multipliers.lr);
  return r;
}

// Returns the number of this update among the updates of a group's parameters that were not
// skipped, counted from 1. Meaningless in an update that is skipped. Group 1 counts from
// unfreeze_at: with the count of the whole run, the bias correction would be too weak and its first
// steps several times too long. Its skipped updates count as well.
HD int UpdateNumber(const UpdateArgs& u, int group) {
  const uint32_t skipped = u.verdict == nullptr ? 0 : u.verdict->skipped;
  const int number = u.hyper->values.iter - static_cast<int>(skipped) + 1;
  const int since = u.hyper->values.iter - u.unfreeze_at + 1;
  return group > 0 && since < number ? since : number;
}

// Computes the gradient that a rule uses: averaged and clipped, then with the gradient of the
// weight decay added (L2: lambda w, L1: lambda sign w), in Caffe's order.
struct Regularized {
  float grad_scale, l1, l2;
  HD float operator()(float grad, float weight) const {
    const float sign = static_cast<float>((weight > 0) - (weight < 0));
    return grad_scale * grad + l2 * weight + l1 * sign;
  }
};

// Where weight decay is applied: added to the gradient, or by the rule itself (AdamW).
enum class Decay { kInGradient, kOfTheRule };

namespace rule_internal {

// Updates one weight by `step` unless the update is skipped, and clears its gradient if asked to.
// Values are selected instead of stored under a condition, because AVX2's masked stores are slow on
// AMD's processors: with them, AdamW took three times as long.
template <class F>
struct ElementStep {
  F step;
  Regularized g;
  bool skip, clear;
  template <class... States>
  HD void operator()(float& w, float& grad, States&... states) const {
    const auto update = [&](float new_w, States... news) {
      step(new_w, news..., g(grad, w));
      w = skip ? w : new_w;
      ((states = skip ? states : news), ...);
    };
    update(w, states...);
    grad = clear ? 0 : grad;
  }
};

// Updates one weight and its average. The average is updated even if the update of the weight is
// skipped.
template <class F>
struct EmaStep {
  ElementStep<F> step;
  EmaBlend blend;
  template <class... States>
  HD void operator()(float& w, float& grad, float& average, States&... states) const {
    step(w, grad, states...);
    blend(average, w);
  }
};

// Returns the functor that updates the weights of parameter number `parameter`. It computes the
// parameter's hyperparameters once for all its weights.
template <bool kEma, class Make>
struct ParamStep {
  UpdateArgs args;
  Make make;
  bool decays;
  HD auto operator()(int parameter) const {
    const ParamHyperparams r = ParamHyperparamsOf(args, parameter);
    const bool skip = args.verdict != nullptr && args.verdict->skip != 0;
    const Regularized g{r.grad_scale, decays ? r.decay_l1 : 0, decays ? r.decay_l2 : 0};
    const ElementStep<decltype(make(r))> step{make(r), g, skip, args.clear_grad};
    if constexpr (kEma) {
      return EmaStep<decltype(make(r))>{step, EmaBlend{args.hyper->ema_keep}};
    } else {
      return step;
    }
  }
};

}  // namespace rule_internal

// Applies a rule to all weights of `range` in one pass over memory. make(ParamHyperparams) returns
// the functor of one parameter, which is called for each weight as step(w, [state...], g), where g
// is the regularised gradient. The pass also clears gradients and writes averages and copies as
// range.args asks.
template <int kStates, class Make>
void UpdateWeights(const Device& device, const UpdateRange& range, Make make,
                   Decay decay = Decay::kInGradient) {
  const auto update = [&](auto ema) {
    constexpr bool kEma = decltype(ema)::value;
    const rule_internal::ParamStep<kEma, Make> step{range.args, make, decay == Decay::kInGradient};
    MultiTensorApply<2 + kStates + (kEma ? 1 : 0)>(device, range.parameters, range.first,
                                                   range.last, step, range.args.copies);
  };
  range.args.ema ? update(std::true_type()) : update(std::false_type());
}

}  // namespace trainer
