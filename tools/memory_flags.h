#pragma once
// The flag --memory=SIZE: the memory that a run may use, kept by recomputing outputs.

#include <cstddef>
#include <optional>

#include "run_flags.h"
#include "trainer/backend/device.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/cli/flag_set.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// ParseMemoryLimit of the flag.
std::optional<size_t> MemoryLimit(const Flags& flags, const Device& device);

// ActivationBudget for the flag's limit of one rank; 0 without the flag.
size_t ActivationBudgetOf(const Flags& flags, const SolverSpec& spec, const Device& device,
                          const Rank& rank = {});

}  // namespace trainer
