#pragma once
// The batch of a solver's training net, as its data layers say, and another one in its place.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace trainer {

// The layers of the training net, where they stand in the file's list.
std::vector<LayerSpec*> TrainingLayers(SolverSpec* spec);

// Calls change(layer, n) for each batch_size n of those layers, which becomes what that returns.
void ChangeTrainingBatches(SolverSpec* spec,
                           const std::function<int64_t(const LayerSpec&, int64_t)>& change);

// Of the first layer that gives one; 0 where none does.
uint32_t BatchSizeOf(SolverSpec* spec);

// Gives the first layer `batch` in place of its own, and the others what has the same ratio to it.
// Throws kUsage where no layer gives a batch_size, at the layer whose own would be no whole number;
// then nothing is changed.
void SetBatchSize(uint32_t batch, SolverSpec* spec);

// How many records an epoch of the training net's first data layer has, perhaps an estimate for a
// large database; 0 where it is not known or the data cannot be read.
int64_t CountTrainingRecords(SolverSpec* spec);

// By how much the learning rate of the solver's type usually grows with a batch that is `times` as
// large: linearly for SGD with or without momentum (Goyal et al., arXiv:1706.02677), by the square
// root for Adam (Malladi et al., arXiv:2205.10287). Nothing for types without such a rule.
std::optional<double> RateFactor(const SolverSpec& spec, double times);
// Whether that rule is the uncertain one of Adam.
bool ScalesByRoot(const SolverSpec& spec);

}  // namespace trainer
