#pragma once
// What a run shows and keeps of itself: its folder (--run) and the view on a terminal (--log).

#include <memory>
#include <string>

#include "trainer/backend/device.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/cli/flag_set.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/live_view.h"
#include "trainer/monitor/observer.h"

namespace trainer {

// --run: without a value the folder is beside the snapshots, <snapshot_prefix>_run.
Flag RunFolderFlag();
Flag LogFlag();

// From here on the log also goes where the run keeps it, and on a terminal the view takes its
// place. Null where Caffe's log is shown: into files and pipes, with --log=caffe, of other ranks
// than 0.
std::unique_ptr<LiveView> BeginWatching(const Flags& flags, const SolverSpec& spec,
                                        const Rank& replica);

// Adds those who watch: the log, the view (null: none) and, on rank 0, the folder of --run, to
// which the solver and net in force and the environment are written first. Trouble with the disk is
// a warning. Returns TrainOptions::shows_numbers, on all ranks alike.
bool AddWatchers(const Flags& flags, const SolverSpec& spec, const Device& device,
                 const Rank& replica, LiveView* view, ObserverList* observers);

}  // namespace trainer
