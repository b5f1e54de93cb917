#pragma once
// --batch: another batch than the data layers' batch_size says.

#include <string>

#include "find_batch_search.h"
#include "trainer/cli/flag_set.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

bool WantsBestBatch(const Flags& flags);  // --batch=auto

// Applies --batch=auto. A run that resumes (`resumes`) takes the batch that the resolved file has;
// else a short search on the device finds the best. `memory` is the text of --memory.
void ApplyBestBatch(const std::string& memory, MemoryMode mode, const Device& device, bool resumes,
                    SolverSpec* spec);
// A search whose memory and recomputation follow --memory.
BatchSearch MakeBatchSearch(const std::string& memory, MemoryMode mode, const Device& device);

// The same for verbs that still read Flags. TakeBestBatch does nothing without --batch=auto.
void TakeBestBatch(const Flags& flags, const Device& device, bool resumes, SolverSpec* spec);
BatchSearch SearchFor(const Flags& flags, const Device& device);

}  // namespace trainer
