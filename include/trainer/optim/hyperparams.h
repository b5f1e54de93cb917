#pragma once

namespace trainer {

// The hyperparameters of one update, as the solver's policies set them.
struct Hyperparams {
  int iter = 0;  // number of updates before this one
  float lr = 0, momentum = 0, weight_decay = 0;
  bool operator==(const Hyperparams&) const = default;
};

}  // namespace trainer
