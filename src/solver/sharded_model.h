#pragma once
// The whole model of a run whose ranks have one pipeline stage each. Files always hold the whole
// net. In other runs the whole model is the rank's own.

#include "trainer/checkpoint/snapshot_writer.h"
#include "training_model.h"

namespace trainer {

// Returns `whole` without the layers of other ranks' stages.
caffe::NetParameter OwnStage(const SolverContext& run, caffe::NetParameter whole);
// Returns the index of a parameter's history in a snapshot of the whole net.
int HistoryIndex(const SolverContext& run, const TrainingModel& model, size_t kind, size_t param);
size_t WholeParams(const SolverContext& run, const TrainingModel& model);
uint64_t WholeWeightBytes(const SolverContext& run, const TrainingModel& model);

// Adds the stages of all other ranks to rank 0's snapshot: rank 0 calls GatherStages, which extends
// *content, and each other rank calls SendStage.
void GatherStages(const SolverContext& run, const TrainingModel& model, SnapshotContent* content);
void SendStage(const SolverContext& run, const TrainingModel& model);

}  // namespace trainer
