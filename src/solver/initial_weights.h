#pragma once
// The weights with which a run starts.

#include <string>
#include <vector>

#include "tester.h"

namespace trainer {

// Copies the weights of .caffemodel files, in this order, to the nets of the run. Layers that
// `reset` names keep the values of their fillers: see WeightLoader::ForTraining.
void LoadWeights(const SolverContext& run, const TrainingModel& model, const Tester& tester,
                 const std::vector<std::string>& files, const std::vector<std::string>& reset);

// Broadcasts rank 0's weights and optimizer state, whatever files the other ranks have read, and
// then checks by a hash that all ranks have the same. Throws kProtocol if they do not. Collective.
void BroadcastWeights(const SolverContext& run, const TrainingModel& model, const Tester& tester);

}  // namespace trainer
