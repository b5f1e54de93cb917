#include "trainer/rules/decide.h"

#include <cfloat>
#include <cmath>

#include "trainer/backend/loops/multi_tensor.h"

namespace trainer {
namespace {

struct Square {
  const float* x;
  HD float operator()(int64_t i) const { return x[i] * x[i]; }
};

template <int kArray>
struct SquaresOf {
  HD Square operator()(const TensorTuple& parameter) const { return {parameter.array[kArray]}; }
};
constexpr int kWeights = 0, kGradients = 1;

struct Write {
  UpdateRates rates;
  float keep;
  RateWords* to;
  HD void operator()(int64_t) const {
    to->rates = rates;
    to->keep = keep;
  }
};

struct DecideOnce {
  const float* squares;
  DecideRules rules;
  UpdateWords* words;

  HD void operator()(int64_t) const {
    UpdateWords now = *words;
    const float scale = rules.scaled ? now.loss_scale : 1.0f;
    now.norm = sqrtf(*squares) / rules.replicas / scale;
    const bool clips = rules.clip >= 0 && now.norm > rules.clip;
    now.grad_factor = (clips ? rules.clip / now.norm : 1.0f) / scale;
    now.skip = 0;
    if (rules.scaled) Count(*squares <= FLT_MAX, now);
    *words = now;
  }

  HD void Count(bool finite, UpdateWords& now) const {
    if (finite) {
      now.in_a_row = 0;
      if (++now.good < rules.window) return;
      Scale(2, now);
    } else {
      now.skip = 1;
      ++now.skipped;
      ++now.in_a_row;
      Scale(0.5f, now);
    }
    now.good = 0;
  }

  HD void Scale(float by, UpdateWords& now) const {
    const float next = now.loss_scale * by;
    const bool within = by > 1 ? next <= kMostLossScale : next >= kLeastLossScale;
    if (!rules.fixed && within) now.loss_scale = next;
  }
};

}  // namespace

void SumSquares(const Device& device, const TensorList& parameters, int first, int last,
                float* grad_squares, float* weight_squares) {
  MultiTensorReduce(device, parameters, first, last, {grad_squares, weight_squares},
                    SquaresOf<kGradients>(), SquaresOf<kWeights>());
}

void WriteRates(const Device& device, const RateWords& rates, RateWords* words) {
  ForEach(device, 1, Write{rates.rates, rates.keep, words});
}

void Decide(const Device& device, const float* squares, const DecideRules& rules,
            UpdateWords* words) {
  ForEach(device, 1, DecideOnce{squares, rules, words});
}

}  // namespace trainer
