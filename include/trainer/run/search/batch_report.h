#pragma once
// The results of a search for the batch size as text and JSON.

#include <string>

#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"
#include "trainer/run/search/batch_search.h"

namespace trainer {

// Returns a table, and sentences that say which batch and which learning rate to use.
std::string ToText(const BatchSearchResult& result, const BatchSearchOptions& options,
                   const SolverSpec& spec);
// Returns the same for programs. Batches that were not run, or ran out of memory, have no times.
Json ToJson(const BatchSearchResult& result, const BatchSearchOptions& options);

}  // namespace trainer
