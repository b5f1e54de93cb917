#pragma once
// What a run shows and keeps of itself: its folder (--run) and the view on a terminal (--log).

#include <memory>
#include <string>

#include "flags.h"
#include "trainer/backend/device.h"
#include "trainer/base/replica.h"
#include "trainer/config/solver_spec.h"
#include "trainer/observe/live_view.h"
#include "trainer/observe/observer.h"

namespace trainer {

Flag RunFolderFlag();
Flag LogFlag();

// The folder of --run, or "". Without a value it is beside the snapshots: <snapshot_prefix>_run.
std::string RunFolderOf(const Flags& flags, const SolverSpec& spec);

// From here on the log also goes where the run keeps it, and on a terminal the view takes its
// place. Null where Caffe's log is shown: into files and pipes, with --log=caffe, of other ranks
// than 0.
std::unique_ptr<LiveView> BeginWatching(const Flags& flags, const SolverSpec& spec,
                                        const Replica& replica);

// Writes what the folder says about the run before it begins: the solver and net in force and the
// environment. Trouble with the disk is a warning.
void WriteRunFacts(const std::string& folder, const SolverSpec& spec, const Device& device,
                   const Replica& replica);

// Adds the observers of the folder, if there is one.
void WatchInFolder(const std::string& folder, const SolverSpec& spec, ObserverList* observers);

}  // namespace trainer
