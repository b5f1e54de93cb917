#pragma once
// Where a run saves its last snapshot if the folder of its snapshots refuses it.

#include <chrono>
#include <string>
#include <vector>

#include "trainer/run/jobs/scheduler.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Returns the folders for a last snapshot, in the order in which they are tried: `given`, which may
// be "", then $SLURM_TMPDIR and $TMPDIR.
std::vector<std::string> RescueFolders(const std::string& given,
                                       const SchedulerAccess& access = {});

// Returns RescueFolders(folder) and the command that resumes: the one of this process with
// --snapshot. Throws kCannotCreate if `folder` is given and does not exist.
SolverOptions::Rescue MakeRescueOptions(const std::string& folder,
                                        const SchedulerAccess& access = {});

// Returns the seconds of KillWait in the output of `scontrol show config`; Slurm's default, 30 s,
// if they are missing.
std::chrono::seconds ReadKillWait(const std::string& out);

// Returns the words of a command line with --snapshot=`state` in place of their start.
std::string ResumeCommand(const std::vector<std::string>& words, const std::string& state);
// Returns the words of a command line with --resume=auto in place of their start.
std::string AutoResumeCommand(const std::vector<std::string>& words);

}  // namespace trainer
