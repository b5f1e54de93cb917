#pragma once
// Checks which parameters of a net learn, and which layers do not give meaningful outputs yet.

#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// Whether an output has a loss weight, so that training minimises something.
bool HasLoss(const Net& net);

// Returns the parameters of a training net that have an lr_mult other than 0 but no gradient from a
// loss, in layer order. They keep their initial values.
std::vector<const Param*> UntrainedParams(const Net& net);

// Numbers of layers, of their parameters and of the weights in these.
struct LearningCount {
  int64_t layers = 0, params = 0, weights = 0;
};
// Counts what a training net changes by gradients.
LearningCount LearningCounts(const Net& net);
// Counts what a net could learn: all parameters except statistics.
LearningCount LearnableCounts(const Net& net);
// Returns the names of the layers with parameters that `freeze` keeps from learning, in order.
std::vector<std::string> FrozenLayers(const Net& net);
// Returns "1 of 3 layers learn, 130 of 30090 weights; frozen: conv1, fc1".
std::string DescribeLearning(const Net& net);

// Returns the names of the BatchNorm layers in phase TEST whose running averages no training
// iteration has set yet. Their outputs are about 1 / sqrt(eps) times too large.
std::vector<std::string> LayersWithoutAverages(const Net& net);

}  // namespace trainer
