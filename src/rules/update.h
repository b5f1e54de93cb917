#pragma once
// What the rules share: one pass over weights, gradients and states. Only files of this module
// include it; it holds device code, see map.h.

#include <cmath>
#include <type_traits>

#include "blend.h"
#include "trainer/backend/loops/multi_tensor.h"
#include "trainer/rules/rule.h"

namespace trainer {

// One parameter in one update.
struct StepRates {
  float rate = 0;  // learning rate times lr_mult, or what larc puts there
  float momentum = 0;
  float grad_scale = 1;                  // what makes the mean gradient, clipped
  float decay_l1 = 0, decay_l2 = 0;      // weight_decay times decay_mult
  bool decays = true;                    // decay_mult is not 0: no bias and no scale of a norm
  float weight_norm = 0, grad_norm = 0;  // 2-norms, of that gradient without decay; only for a
                                         // rule that needs them
};

// NVIDIA Caffe's larc: local = (1 - momentum) * larc_eta * |w| / |g|, or 1 where a norm is 0, takes
// the factor of a positive lr_mult; the rate is then rate * local (scale) or the lesser of both
// (clip). g is the averaged and clipped gradient without decay.
// Source: Ginsburg, Gitman and You, "Large batch training of convolutional networks with layer-wise
// adaptive rate scaling", 2018.
HD float LocalRate(const UpdateNumbers& u, const StepRates& r, float lr_mult) {
  const float rate = u.now->rates.rate;
  if (u.larc == Larc::kNone) return rate * lr_mult;
  float local = lr_mult;
  if (lr_mult > 0) {
    const bool known = r.weight_norm > 0 && r.grad_norm > 0;
    local = known ? (1 - r.momentum) * u.larc_eta * r.weight_norm / r.grad_norm : 1;
  }
  if (u.larc == Larc::kScale) return rate * local;
  return local < rate ? local : rate;
}

HD StepRates RatesOf(const UpdateNumbers& u, int parameter) {
  const ParamMults mults = u.mults[parameter];
  const float decay = u.now->rates.weight_decay * mults.decay;
  StepRates r;
  r.momentum = u.now->rates.momentum;
  r.grad_scale = (u.words == nullptr ? 1.0f : u.words->grad_factor) / u.passes;
  r.decays = mults.decay != 0;
  r.decay_l1 = u.l1 ? decay : 0;
  r.decay_l2 = u.l1 ? 0 : decay;
  if (u.weight_squares != nullptr) {
    r.weight_norm = sqrtf(u.weight_squares[parameter]);
    r.grad_norm = r.grad_scale * sqrtf(u.grad_squares[parameter]);
  }
  r.rate = LocalRate(u, r, mults.lr);
  return r;
}

// The number of this update among those that moved the weights, counted from 1. Of an update that
// is skipped it has no meaning.
HD int UpdateNumber(const UpdateNumbers& u) {
  const uint32_t skipped = u.words == nullptr ? 0 : u.words->skipped;
  return u.now->rates.iter - static_cast<int>(skipped) + 1;
}

// The gradient a rule works on: averaged, clipped, with the weight decay's gradient added
// (L2: lambda w, L1: lambda sign w), in that order, as in Caffe.
struct Regularized {
  float grad_scale, l1, l2;
  HD float operator()(float grad, float weight) const {
    const float sign = static_cast<float>((weight > 0) - (weight < 0));
    return grad_scale * grad + l2 * weight + l1 * sign;
  }
};

// Where the weight decay goes: into the gradient, or where the rule puts it.
enum class Decay { kInGradient, kOfTheRule };

namespace rule_internal {

template <class F>
struct ElementStep {
  F step;
  Regularized g;
  bool skip, clear;
  template <class... States>
  HD void operator()(float& w, float& grad, States&... states) const {
    if (!skip) step(w, states..., g(grad, w));
    if (clear) grad = 0;
  }
};

// The average follows the weight also where an update is skipped.
template <class F>
struct AveragedStep {
  ElementStep<F> step;
  Blend blend;
  template <class... States>
  HD void operator()(float& w, float& grad, float& average, States&... states) const {
    step(w, grad, states...);
    blend(average, w);
  }
};

template <bool kAverages, class Make>
struct StepOfParameter {
  UpdateNumbers numbers;
  Make make;
  bool decays;
  HD auto operator()(int parameter) const {
    const StepRates r = RatesOf(numbers, parameter);
    const bool skip = numbers.words != nullptr && numbers.words->skip != 0;
    const Regularized g{r.grad_scale, decays ? r.decay_l1 : 0, decays ? r.decay_l2 : 0};
    const ElementStep<decltype(make(r))> step{make(r), g, skip, numbers.clear_grad};
    if constexpr (kAverages) {
      return AveragedStep<decltype(make(r))>{step, Blend{numbers.now->keep}};
    } else {
      return step;
    }
  }
};

}  // namespace rule_internal

// make(rates of a parameter) is a functor. Calls it for every weight of the parameters, as
// step(w, [state...], g), in one pass over memory, with g regularised and the gradient cleared on
// the way.
template <int kStates, class Make>
void UpdateWeights(const Device& device, const UpdatePart& part, Make make,
                   Decay decay = Decay::kInGradient) {
  const auto update = [&](auto averages) {
    constexpr bool kAverages = decltype(averages)::value;
    const rule_internal::StepOfParameter<kAverages, Make> step{part.numbers, make,
                                                               decay == Decay::kInGradient};
    MultiTensorApply<2 + kStates + (kAverages ? 1 : 0)>(device, part.parameters, part.first,
                                                        part.last, step, part.numbers.copies);
  };
  part.numbers.averages ? update(std::true_type()) : update(std::false_type());
}

}  // namespace trainer
