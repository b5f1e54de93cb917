#pragma once
// The verdict of --overfit: whether a net learned the few batches that it was trained on, and if
// not, why.

#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

class OverfitVerdict {
 public:
  // `batches`: the iterations of an epoch.
  OverfitVerdict(int batches, float base_lr) : batches_(batches), base_lr_(base_lr) {}

  // Copies the weights before the first iteration.
  void Begin(const Net& net);
  // Notes the mean loss of the last epoch after `iter` iterations. Returns whether that is enough:
  // the loss is below a two-hundredth of the first one.
  bool Note(int iter, float loss);
  // Returns "learned: loss 2.30 -> 0.01, in 42 iterations". Throws kNotLearned with the likely
  // cause if the loss is still above a tenth of the first one.
  std::string Conclude(const Net& net) const;

 private:
  // Returns the likely cause, given the weights after the run.
  std::string Cause(const Net& net) const;

  const int batches_;
  const float base_lr_;
  int iter_ = 0;
  float first_ = 0, last_ = 0, least_ = 0;
  std::vector<std::vector<float>> before_;  // the weights of each parameter
};

}  // namespace trainer
