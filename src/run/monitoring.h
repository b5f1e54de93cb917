#pragma once
// Shows and records a run: the folder of --run, and the view on a terminal.

#include <memory>
#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/live_view.h"
#include "trainer/monitor/observer.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/run/monitor_options.h"

namespace trainer {

// Returns the folder of --run, or "".
std::string RunFolderOf(const MonitorOptions& options, const SolverSpec& spec);

// Starts copying the log to the run's files and, on a terminal, returns the view that replaces the
// log there. Returns null if Caffe's log is shown: in files and pipes, with --log=caffe, and on
// ranks other than 0. A file that cannot be written is a warning. Throws kCannotCreate if the
// folder of --run is a file.
std::unique_ptr<LiveView> StartMonitoring(const MonitorOptions& options, const SolverSpec& spec,
                                          const Rank& rank);

// Adds the observers of the log, the view (or null) and, on rank 0, the folder of --run. First
// writes the resolved solver, the net and RunInfo to the folder, and sets `*info`. Failures of the
// disk are warnings. Returns SolverOptions::shows_numbers, which is the same on all ranks.
bool AddObservers(const MonitorOptions& options, const SolverSpec& spec, const Device& device,
                  const Rank& rank, LiveView* view, ObserverList* observers, RunInfo* info);

}  // namespace trainer
