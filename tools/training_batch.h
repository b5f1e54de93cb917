#pragma once
// The batch of a solver's training net, as its data layers say, and another one in its place.

#include <cstdint>
#include <functional>
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

}  // namespace trainer
