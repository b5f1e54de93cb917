#pragma once
// The files and outputs of the whole net, also if each rank has only one stage of it.

#include <vector>

#include "trainer/checkpoint/snapshot_writer.h"
#include "training_model.h"

namespace trainer {

// Returns `whole` without the layers of other ranks' stages.
caffe::NetParameter OwnStage(const SolverContext& run, caffe::NetParameter whole);

// Returns every element of every output of `net`, in Caffe's numbering. `number` is the net's in
// Pipeline. If this rank has only one stage, returns the outputs of all stages, and all ranks
// must call it.
std::vector<ReportedValue> ReadOutputs(const SolverContext& run, const Net& net, int number);

// Returns the outputs of the whole net if this rank has only one stage, with -0 in place of other
// stages' numbers: x + -0 is x, so the sum over the ranks gives each number unchanged.
std::vector<ReportedValue> OutputsOfStage(const SolverContext& run, const Net& net, int number);

// Returns the index of a parameter's history in a snapshot of the whole net.
int HistoryIndex(const SolverContext& run, const TrainingModel& model, size_t kind, size_t param);
// Returns the number of parameters of the whole net, over all stages of a pipeline.
size_t WholeParams(const SolverContext& run, const TrainingModel& model);
// Returns the bytes of the weights of the whole net.
uint64_t WholeWeightBytes(const SolverContext& run, const TrainingModel& model);

// Adds the stages of all other ranks to rank 0's snapshot: rank 0 calls GatherStages, which extends
// *content, and each other rank calls SendStage.
void GatherStages(const SolverContext& run, const TrainingModel& model, SnapshotContent* content);
void SendStage(const SolverContext& run, const TrainingModel& model);

}  // namespace trainer
