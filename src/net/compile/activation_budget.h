#pragma once
// Fits the activations of a net into a budget by recomputation.

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// If the plan needs more than NetOptions::activation_budget_bytes, chooses outputs that backward
// recomputes and plans again until it fits. The choice is greedy and keeps the added work small.
// Throws kResource if recomputing all candidates is not enough.
void FitActivationBudget(const NetOptions& options, Graph& graph);

}  // namespace trainer
