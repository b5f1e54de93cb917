#pragma once
// Fields of a solver that give times in epochs instead of iterations: max_epoch for max_iter,
// test_interval_epoch, snapshot_epoch and stepvalue_epoch.

#include <cstdint>
#include <string>

#include "trainer/config/solver_spec.h"

namespace trainer {

struct EpochSize {
  int64_t records = 0;        // of the training set
  int64_t per_iteration = 0;  // records that an iteration reads on all ranks together

  // Returns the iterations of an epoch. The last one counts as a whole iteration, though its batch
  // continues with the first records of the next epoch.
  int64_t Iterations() const { return (records + per_iteration - 1) / per_iteration; }
};

// Returns whether the solver gives a time in epochs.
bool UsesEpochs(const caffe::SolverParameter& solver);

// Returns whether the solver gives an interval between tests, in iterations or in epochs.
bool HasTestInterval(const caffe::SolverParameter& solver);

// `before` is the solver before the command line changed it to `solver`. If the command line gave a
// time in epochs that the file gives in iterations, or the reverse, removes the file's.
void DropReplacedTimes(const caffe::SolverParameter& before, caffe::SolverParameter* solver);

// Replaces the fields in epochs by those in iterations. Times are rounded to whole iterations, and
// all but steps of the learning rate are at least 1. Returns a line with both: "an epoch is 63
// iterations (4000 records, 64 per iteration): max_epoch 5 is max_iter 315". Throws kConfig if the
// solver then counts too many iterations, steps do not increase, or the warm-up leaves no
// iterations for the decay.
std::string ResolveEpochs(const EpochSize& epoch, SolverSpec* spec);

// Undoes ResolveEpochs: gives the fields that `written` has in epochs back to the solver.
void RestoreEpochs(const caffe::SolverParameter& written, SolverSpec* spec);

}  // namespace trainer
