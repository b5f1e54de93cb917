#pragma once
// Converts the state of a run to the message of a .solverstate and back.

#include <string>

#include "tester.h"
#include "trainer/checkpoint/snapshot_writer.h"

namespace trainer {

// Restores weights, optimizer state and progress. `file` names the snapshot in errors. Throws
// kBadSnapshot if it was made with another solver or net.
void RestoreState(const LoadedState& loaded, const std::string& file, SolverContext& run,
                  TrainingModel& model, const Tester& tester);

// Does the same from a content that CopyRun returned; clears its weights.
void RestoreState(SnapshotContent& content, SolverContext& run, TrainingModel& model,
                  const Tester& tester);
// Returns all that a snapshot would contain, on each rank. Collective. All ranks must have the same
// weights and optimizer states.
SnapshotContent CopyRun(const SolverContext& run, TrainingModel& model, const Tester& tester);
// Writes optimizer state and progress to *state, whose memory is reused. Collective; only rank 0's
// state is complete.
void StateTo(const SolverContext& run, const TrainingModel& model, const Tester& tester,
             caffe::SolverState* state);

}  // namespace trainer
