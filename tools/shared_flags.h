#pragma once
// Flags that several verbs have, and what they mean.

#include <string>
#include <vector>

#include "flags.h"
#include "net.pb.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"

namespace trainer {

Flag GpuFlag();
Flag LevelFlag();
Flag StageFlag();
Flag PhaseFlag();
Flag MemoryFlag();
Flag IterationsFlag();
Flag JsonFlag();
Flag SetFlag();

// Throws kUsage for a --gpu that is neither "all" nor a list of numbers, kUnavailable for one that
// is, because this build computes on the CPU only.
void RefuseGpu(const Flags& flags);

StateFlags StateFlagsOf(const Flags& flags);
caffe::NetState NetStateOf(const Flags& flags, caffe::Phase phase);
MemoryMode ParseMemoryMode(const Flags& flags);

// The files of --solver and --model, with the changes of --set.
SolverSpec SolverOf(const Flags& flags);
NetSpec ModelOf(const Flags& flags);

}  // namespace trainer
