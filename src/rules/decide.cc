#include "trainer/rules/decide.h"

#include <cfloat>
#include <cmath>

#include "trainer/backend/map_rows.h"
#include "trainer/backend/map_segments.h"

namespace trainer {
namespace {

struct Square {
  const float* x;
  HD float operator()(int64_t i) const { return x[i] * x[i]; }
};

template <int kArray>
struct SquaresOf {
  HD Square operator()(const Segment& parameter) const { return {parameter.array[kArray]}; }
};
constexpr int kWeights = 0, kGradients = 1;

struct DecideOnce {
  const float* squares;
  int64_t parameters;
  DecideRules rules;
  UpdateWords* words;

  template <class Row>
  HD void operator()(const Row& row) const {
    const float sum = row.Sum([&](int64_t i) { return squares[i]; });
    row.Once([&] {
      UpdateWords now = *words;
      const float scale = rules.scaled ? now.loss_scale : 1.0f;
      now.norm = sqrtf(sum) / rules.replicas / scale;
      const bool clips = rules.clip >= 0 && now.norm > rules.clip;
      now.grad_factor = (clips ? rules.clip / now.norm : 1.0f) / scale;
      now.skip = 0;
      if (rules.scaled) Count(sum <= FLT_MAX, now);
      *words = now;
    });
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

void SumSquares(const Device& device, const Segments& parameters, int first, int last,
                float* grad_squares, float* weight_squares) {
  if (weight_squares == nullptr) {
    return SumSegments(device, parameters, first, last, {grad_squares}, SquaresOf<kGradients>());
  }
  SumSegments(device, parameters, first, last, {grad_squares, weight_squares},
              SquaresOf<kGradients>(), SquaresOf<kWeights>());
}

void Decide(const Device& device, const float* grad_squares, int parameters,
            const DecideRules& rules, UpdateWords* words) {
  MapRows(device, 1, parameters, DecideOnce{grad_squares, parameters, rules, words});
}

}  // namespace trainer
