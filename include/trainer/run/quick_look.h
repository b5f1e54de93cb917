#pragma once
// Short runs that show whether a net can learn and whether a run would work.

#include <string>

#include "trainer/config/solver_spec.h"

namespace trainer {

// The values of the flags with the same names.
struct QuickLook {
  int overfit = 0;         // batches to train on, and to test with; 0: a usual run
  bool quick = false;      // one iteration and one snapshot, of which nothing stays
  std::string limit = "";  // records to train on: a share such as "0.1", or a number; "": all

  bool IsLook() const { return overfit > 0 || quick; }
};

// Reads and applies --limit: each data layer of the training net reads only its first records, and
// the log says how many. Throws kUsage for a value that is no share and no number, and if no layer
// reads a set of records.
void ApplyLimit(const std::string& limit, SolverSpec* spec);

// Changes the solver so that it trains and tests on the same `batches` batches in every epoch,
// without random changes of images, dropout, stochastic depth, noise, label smoothing, weight decay
// and averaged weights, at a constant learning rate, and writes no snapshots. `parts` is the number
// of batches that a pass reads over all ranks (see BatchParts). Throws kUsage if the
// training net reads no set of records, or one with too few of them, and if a layer must draw
// random numbers: pooling that is STOCHASTIC, noise that is BERNOULLI.
void ApplyOverfit(int batches, int parts, SolverSpec* spec);

// Changes the solver to one iteration, and one batch per test after it, without snapshots.
void ApplyQuick(SolverSpec* spec);

}  // namespace trainer
