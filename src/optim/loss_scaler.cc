#include "loss_scaler.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// 48 halvings take a loss scale from its largest to its smallest value; more cannot help.
constexpr uint32_t kMostInARow = 50;

// Returns the rules for clip_gradients and a loss scale, if there is one.
VerdictRules RulesOf(float clip, const std::optional<LossScaleOptions>& scale) {
  VerdictRules rules;
  rules.clip = clip;
  rules.scaled = scale.has_value();
  if (scale) {
    rules.fixed = scale->fixed;
    rules.window = scale->window;
  }
  return rules;
}

}  // namespace

LossScaler::LossScaler(const Device& device, float clip,
                       const std::optional<LossScaleOptions>& scale)
    : device_(device),
      rules_(RulesOf(clip, scale)),
      scale_(scale),
      memory_(device.Allocate(sizeof(GradientVerdict)), Free{&device}),
      verdict_(static_cast<GradientVerdict*>(memory_.get())),
      arriving_(1, &device.PinnedMemory()),
      read_(device.NewReadback()) {
  if (scale) last_.loss_scale = scale->factor;
  device_.CopyToDevice(verdict_, &last_, sizeof(last_));
}

void LossScaler::Decide(const float* squares, int ranks) {
  rules_.ranks = static_cast<float>(ranks);
  trainer::Decide(device_, squares, rules_, verdict_);
}

void LossScaler::Read(int iter) {
  if (Last().consecutive_skips >= kMostInARow) {
    throw Error(ErrorCode::kDiverged,
                Join("iteration ", iter, ": the last ", last_.consecutive_skips,
                     " updates were skipped, because gradients were not finite (NaN or infinity) "
                     "with loss scale ",
                     last_.loss_scale, rules_.fixed ? "; give a smaller loss_scale, or 0" : "",
                     ". Try a lower base_lr, and check the scale of the data"));
  }
  iter_ = iter;
  read_->Start(arriving_.data(), verdict_, sizeof(GradientVerdict));
  decided_ = true;
  told_ = false;
}

const GradientVerdict& LossScaler::Last() {
  if (!decided_) return last_;
  read_->Wait();
  decided_ = false;
  return last_ = arriving_[0];
}

std::string LossScaler::TakeNote() {
  Last();
  if (told_) return "";
  told_ = true;
  if (last_.skip != 0) {
    return Join("Iteration ", iter_,
                ": gradients are not finite (NaN or infinity), the update is skipped; loss scale ",
                last_.loss_scale, ", ", last_.skipped, " updates skipped so far");
  }
  if (rules_.clip < 0 || !(last_.norm > rules_.clip)) return "";
  return Join("Gradient clipping: scaling down gradients (L2 norm ", last_.norm, " > ", rules_.clip,
              ") by scale factor ", rules_.clip / last_.norm);
}

LossScaleState LossScaler::State() {
  const GradientVerdict& last = Last();
  return {last.loss_scale, last.good, last.skipped};
}

void LossScaler::Restore(const LossScaleState& state) {
  Last();
  if (!rules_.fixed) last_.loss_scale = state.factor;
  last_.good = state.good;
  last_.skipped = static_cast<uint32_t>(state.skipped);
  last_.consecutive_skips = 0;
  device_.CopyToDevice(verdict_, &last_, sizeof(last_));
}

void LossScaler::EndScaling() {
  Last();
  rules_.fixed = true;
  last_ = {};
  device_.CopyToDevice(verdict_, &last_, sizeof(last_));
}

}  // namespace trainer
