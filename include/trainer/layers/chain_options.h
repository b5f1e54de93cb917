#pragma once

namespace trainer {

// How a layer that learns from samples of its own model draws them in training. The update rule
// chooses the values (Optimizer::ConfigureCompile).
struct ChainOptions {
  int steps = 1;            // Gibbs steps of each chain in a pass
  bool persistent = false;  // chains continue from the last pass, else they start at the data
  int chains = 0;           // number of persistent chains; 0: as many as the batch has records
  // Unless the target is 0, the update moves the mean of each hidden unit towards it.
  float sparsity_target = 0, sparsity_cost = 0.01f;
  float sparsity_decay = 0.9f;  // weight of the past in the measured mean
};

}  // namespace trainer
