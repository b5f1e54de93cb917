#pragma once
// The number format of gradients that travel between hosts.

#include <optional>

#include "trainer/config/solver_spec.h"
#include "trainer/parallel/compression_type.h"
#include "trainer/run/ranks/rank_options.h"

namespace trainer {

// Returns the format that --exchange_type names; no value if it is not given.
std::optional<CompressionType> RequestedCompression(const RankOptions& options);
// Returns the format of --exchange_type, else of the solver, and sets the solver's field to it.
CompressionType ApplyCompression(const RankOptions& options, SolverSpec* spec);

}  // namespace trainer
