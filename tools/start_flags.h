#pragma once
// The flags that say where a run starts.

#include "trainer/cli/flag_set.h"
#include "trainer/run/start_point.h"

namespace trainer {

Flag SnapshotFlag();
Flag AllowOutsideFlag();
Flag ResumeFlag();
Flag StartWeightsFlag();

// The values of all these flags.
StartOptions StartOptionsOf(const Flags& flags);
// The value of StartWeightsFlag alone.
StartOptions WeightOptionsOf(const Flags& flags);

}  // namespace trainer
