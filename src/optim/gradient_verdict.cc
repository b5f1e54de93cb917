#include "gradient_verdict.h"

#include <cfloat>
#include <cmath>

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

// Writes the values, which travel as arguments of the kernel, to the device's memory.
struct CopyHyperparams {
  Hyperparams hyper;
  float keep;
  DeviceHyperparams* to;
  HD void operator()(int64_t) const {
    to->values = hyper;
    to->ema_keep = keep;
  }
};

// Computes the verdict, in one thread: see Decide.
struct DecideOnce {
  const float* squares;
  VerdictRules rules;
  GradientVerdict* verdict;

  HD void operator()(int64_t) const {
    GradientVerdict now = *verdict;
    const float scale = rules.scaled ? now.loss_scale : 1.0f;
    now.norm = sqrtf(*squares) / rules.ranks / scale;
    const bool clips = rules.clip >= 0 && now.norm > rules.clip;
    now.grad_factor = (clips ? rules.clip / now.norm : 1.0f) / scale;
    now.skip = 0;
    if (rules.scaled) CountUpdate(*squares <= FLT_MAX, now);
    *verdict = now;
  }

  // Counts an update that is applied (`finite`) or skipped. Doubles the loss scale after a window
  // of applied ones, and halves it after a skipped one.
  HD void CountUpdate(bool finite, GradientVerdict& now) const {
    if (finite) {
      now.consecutive_skips = 0;
      if (++now.good < rules.window) return;
      MultiplyScale(2, now);
    } else {
      now.skip = 1;
      ++now.skipped;
      ++now.consecutive_skips;
      MultiplyScale(0.5f, now);
    }
    now.good = 0;
  }

  // Multiplies the loss scale, unless it is fixed or would leave its range.
  HD void MultiplyScale(float by, GradientVerdict& now) const {
    const float next = now.loss_scale * by;
    const bool within = by > 1 ? next <= kMaxLossScale : next >= kMinLossScale;
    if (!rules.fixed && within) now.loss_scale = next;
  }
};

}  // namespace

void WriteHyperparams(const Device& device, const DeviceHyperparams& hyper, DeviceHyperparams* to) {
  ForEach(device, 1, CopyHyperparams{hyper.values, hyper.ema_keep, to});
}

void Decide(const Device& device, const float* squares, const VerdictRules& rules,
            GradientVerdict* verdict) {
  ForEach(device, 1, DecideOnce{squares, rules, verdict});
}

}  // namespace trainer
