#pragma once
// --batch: another batch than the data layers' batch_size says.

#include <string>

#include "find_batch_search.h"
#include "trainer/cli/flag_set.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

Flag BatchFlag();
bool WantsBestBatch(const Flags& flags);  // --batch=auto

// With --batch=auto: the batch that the run took that this one goes on from (`resumes`), as its
// <snapshot_prefix>_resolved.prototxt says; else the best of a short search on the device.
void TakeBestBatch(const Flags& flags, const Device& device, bool resumes, SolverSpec* spec);

// Room and recomputation as --memory says for the device.
BatchSearch SearchFor(const Flags& flags, const Device& device);

}  // namespace trainer
