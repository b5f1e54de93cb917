#include "loss/class_weights.h"

#include <cmath>

#include "trainer/base/text/text.h"

namespace trainer {

ClassWeights::ClassWeights(const LayerSpec& spec) {
  constexpr float kMostPower = 4;
  const caffe::LossParameter& loss = spec.proto().loss_param();
  values_.assign(loss.class_weight().begin(), loss.class_weight().end());
  for (const float weight : values_) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    spec.FailIn("loss_param", "class_weight",
                Join("class_weight is ", weight, "; it must be a finite factor, 0 or more"));
  }
  counted_later_ = loss.has_class_weight_power();
  if (!counted_later_) return;
  const float power = loss.class_weight_power();
  if (!(power >= 0 && power <= kMostPower)) {
    spec.FailIn("loss_param", "class_weight_power",
                Join("class_weight_power is ", power, "; it must be from 0 (no weights) to ",
                     kMostPower, "; 1 weighs classes by their inverse frequency"));
  }
  if (!values_.empty()) {
    spec.FailIn("loss_param", "class_weight_power",
                "class_weight_power sets class_weight, which is given as well; keep one of them");
  }
}

void ClassWeights::Plan(const LayerSpec& spec, int64_t classes) {
  if (counted_later_) values_.assign(static_cast<size_t>(classes), 1.0f);
  if (values_.empty() || static_cast<int64_t>(values_.size()) == classes) return;
  spec.FailIn("loss_param", "class_weight",
              Join("class_weight is given ", values_.size(), " times for ", classes,
                   " classes; give one per class, class 0 first"));
}

}  // namespace trainer
