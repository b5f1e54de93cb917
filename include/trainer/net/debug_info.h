#pragma once
// The lines of debug_info.

#include "trainer/net/net.h"

namespace trainer {

// Logs the mean absolute value of every output, parameter and gradient, each while the node's
// values are still in memory, and the norms of all parameters and gradients after a backward pass.
// With several virtual ranks, logs only rank 0. The same hook serves all nets.
const NodeHook* DebugInfoHook();

}  // namespace trainer
