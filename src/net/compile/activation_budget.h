#pragma once
// Keeps the activations of a net within a budget by recomputation.

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// If the plan needs more than NetOptions::activation_budget_bytes, chooses outputs that the
// backward pass recomputes and plans again, until it fits. A greedy choice keeps the added work
// small. Throws kResource if recomputation of all candidates does not suffice.
void FitActivationBudget(const NetOptions& options, Graph& graph);

}  // namespace trainer
