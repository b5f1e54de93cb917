#pragma once
// Flags that several verbs have, and what they mean.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net.pb.h"
#include "trainer/cli/flag_set.h"
#include "trainer/config/net_state.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"
#include "trainer/run/solver_source.h"

namespace trainer {

Flag LevelFlag();
Flag StageFlag();
Flag PhaseFlag(std::string_view fallback = "TRAIN");
Flag MemoryFlag();
Flag IterationsFlag();
Flag WeightsFlag(bool required = false);  // weights that are given for a net
Flag SeedFlag(std::string_view of);       // help: what the seed is of
Flag JsonFlag();
Flag SetFlag();
Flag ForceFlag();
Flag BadRecordsFlag();

// Tells the readers of data what --bad_records says. Before nets are made.
void ApplyBadRecords(const Flags& flags);

StateFlags StateFlagsOf(const Flags& flags);
caffe::NetState NetStateOf(const Flags& flags, caffe::Phase phase);
caffe::Phase PhaseOf(const Flags& flags);
MemoryMode ParseMemoryMode(const Flags& flags);
MemoryMode ParseMemoryMode(const std::string& memory);

// The backend's registered name, in capitals as a prototxt spells it: --backend.
std::string BackendName(const Flags& flags);

// Copies the files of --weights into the nets, in their order. Logs what became of them.
void LoadWeights(const Flags& flags, std::span<Net* const> nets);

// Throws kCannotCreate where the file of --out is there and --force is not given.
void RefuseToReplace(const Flags& flags);
// The same of another file.
void RefuseToReplace(const Flags& flags, const std::string& path);

// The files of --solver and --model, with the changes of --set. Those of --weights are there.
SolverSpec SolverOf(const Flags& flags);
SolverSource SolverSourceOf(const Flags& flags);
NetSpec ModelOf(const Flags& flags);

}  // namespace trainer
