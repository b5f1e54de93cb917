#include "trainer/steps/update_decision.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// So many updates skipped one after the other take a factor from its largest to its smallest value.
constexpr uint32_t kMostInARow = 50;

DecideRules RulesOf(float clip, const std::optional<LossScaleOptions>& scale) {
  DecideRules rules;
  rules.clip = clip;
  rules.scaled = scale.has_value();
  if (scale) {
    rules.fixed = scale->fixed;
    rules.window = scale->window;
  }
  return rules;
}

}  // namespace

UpdateDecision::UpdateDecision(const Device& device, float clip,
                               const std::optional<LossScaleOptions>& scale)
    : device_(device),
      rules_(RulesOf(clip, scale)),
      scale_(scale),
      memory_(device.Allocate(sizeof(UpdateWords)), Free{&device}),
      words_(static_cast<UpdateWords*>(memory_.get())),
      arriving_(1, &device.PinnedMemory()),
      read_(device.NewReadback()) {
  if (scale) last_.loss_scale = scale->factor;
  device_.CopyToDevice(words_, &last_, sizeof(last_));
}

void UpdateDecision::Decide(const float* squares, int replicas) {
  rules_.replicas = static_cast<float>(replicas);
  trainer::Decide(device_, squares, rules_, words_);
}

void UpdateDecision::Read(int iter) {
  if (Last().in_a_row >= kMostInARow) {
    throw Error(ErrorCode::kDiverged,
                Join("iteration ", iter, ": the last ", last_.in_a_row,
                     " updates were skipped, because gradients were not finite (NaN or infinity) "
                     "with loss scale ",
                     last_.loss_scale, rules_.fixed ? "; give a smaller loss_scale, or 0" : "",
                     ". Try a lower base_lr or clip_gradients, and check the scale of the data"));
  }
  iter_ = iter;
  read_->Start(arriving_.data(), words_, sizeof(UpdateWords));
  decided_ = true;
  told_ = false;
}

const UpdateWords& UpdateDecision::Last() {
  if (!decided_) return last_;
  read_->Wait();
  decided_ = false;
  return last_ = arriving_[0];
}

std::string UpdateDecision::TakeNote() {
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

LossScaleState UpdateDecision::State() {
  const UpdateWords& last = Last();
  return {last.loss_scale, last.good, last.skipped};
}

void UpdateDecision::Restore(const LossScaleState& state) {
  Last();
  if (!rules_.fixed) last_.loss_scale = state.factor;
  last_.good = state.good;
  last_.skipped = static_cast<uint32_t>(state.skipped);
  last_.in_a_row = 0;
  device_.CopyToDevice(words_, &last_, sizeof(last_));
}

void UpdateDecision::EndScaling() {
  Last();
  rules_.fixed = true;
  last_ = {};
  device_.CopyToDevice(words_, &last_, sizeof(last_));
}

}  // namespace trainer
