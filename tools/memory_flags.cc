#include "memory_flags.h"

#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/analysis/memory/memory_room.h"

namespace trainer {

std::optional<size_t> MemoryLimit(const Flags& flags, const Device& device) {
  return ParseMemoryLimit(flags.Text("memory"), device);
}

size_t ActivationBudgetOf(const Flags& flags, const SolverSpec& spec, const Device& device,
                          const Rank& rank) {
  const std::optional<size_t> limit = MemoryLimit(flags, device);
  return limit ? ActivationBudget(*limit, spec, device, rank) : 0;
}

}  // namespace trainer
