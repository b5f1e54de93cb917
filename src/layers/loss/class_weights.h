#pragma once
// The weights of classes in the losses that compare scores with class labels.

#include <cstdint>
#include <vector>

#include "trainer/layers/layer.h"

namespace trainer {

// The factors class_weight of loss_param. `trainer train` counts the records of each class and
// replaces class_weight_power by these factors. Other verbs, such as `trainer test`, do not count
// classes: with class_weight_power every class then has the factor 1.
class ClassWeights {
 public:
  // Throws kConfig at the field's line for a factor below 0 or not finite, for a power that is not
  // from 0 to 4, and for both fields together.
  explicit ClassWeights(const LayerSpec& spec);

  // Whether loss_param gives weights, counted or not.
  bool IsSet() const { return counted_later_ || !values_.empty(); }
  // The name of the field that gives them, for messages.
  const char* field() const { return counted_later_ ? "class_weight_power" : "class_weight"; }
  // Call it in Setup. Throws kConfig unless there are no weights or one for each class.
  void Plan(const LayerSpec& spec, int64_t classes);
  // One weight per class after Plan; empty if none are set.
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
  bool counted_later_ = false;
};

}  // namespace trainer
