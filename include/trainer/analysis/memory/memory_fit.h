#pragma once
// Whether a run fits into memory, and how much of it the activations may take so that it does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/base/ranks/rank.h"

namespace trainer {

// The comparison of a run's memory with the room for it.
struct MemoryFit {
  MemoryRoom room;
  size_t needed = 0;  // bytes
  bool fits = true;
  int64_t batch = 0;
  int64_t batch_that_fits = 0;  // about; 0: no batch, or not known
};

// Compares all items together with the room. The batch that fits is an estimate in which the items
// that grow with the batch do so in proportion.
MemoryFit CheckFit(const std::vector<MemoryItem>& items, const MemoryRoom& room, int64_t batch);

// Returns "12.3 MiB of memory fits into 16.0 GiB; so does a batch of 900", or that no batch would
// fit. Without a limit only the memory.
std::string ToText(const MemoryFit& fit);
Json ToJson(const MemoryFit& fit);

// Returns the bytes that activations of the training net may take (their budget in NetOptions) so
// that the run of the estimate holds at most `limit` bytes; 0 if the run fits as it is. Throws
// kResource if the rest of the run alone takes more.
size_t ActivationBudget(size_t limit, const MemoryEstimate& estimate, const MemoryRoom& room);
// Plans a run of `spec` and returns its budget as above. In a pipeline, the budget is for the stage
// of the rank and for each batch in flight there.
size_t ActivationBudget(size_t limit, const SolverSpec& spec, const Device& device,
                        const Rank& rank = {});

// Throws kResource if a run on the CPU needs more memory than this process may use: what it needs,
// what there is, and which batch would fit. Call before the first iteration, when the solver
// has used little of its memory. Does nothing on a GPU, whose memory each net checks itself.
void RequireRunFits(const SolverSpec& spec, const Device& device, const Rank& rank, Solver& solver);

}  // namespace trainer
