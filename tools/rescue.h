#pragma once
// Where `train` saves its last snapshot when the folder of snapshots refuses it.

#include <string>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/solver/solver.h"

namespace trainer {

Flag RescueFlag();

// The folders that a last snapshot is written to, in this order: `given`, which may be "", then
// $SLURM_TMPDIR and $TMPDIR.
std::vector<std::string> RescueFolders(const std::string& given);

// The folders: --rescue_dir, then $SLURM_TMPDIR and $TMPDIR; the command that resumes: this
// process's with --snapshot. Throws kCannotCreate where --rescue_dir is not a folder.
RescueOptions RescueOptionsOf(const Flags& flags);

// What `scontrol show config` prints as KillWait, in seconds; Slurm's default, 30 s, where it does
// not say.
std::chrono::seconds ReadKillWait(const std::string& out);

// The words of a command line with --snapshot=`state` in place of where it started before.
std::string ResumeCommand(const std::vector<std::string>& words, const std::string& state);
// The same with --resume=auto.
std::string AutoResumeCommand(const std::vector<std::string>& words);

}  // namespace trainer
