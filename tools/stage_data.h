#pragma once
// --stage_data: data sets are read from a copy on this machine.

#include <memory>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/dataset/staging.h"

namespace trainer {

// --stage_data and --stage_keep.
std::vector<Flag> WithStagingFlags(std::vector<Flag> flags);

// Copies what the Data, HDF5Data and ImageData layers of --solver read, as --stage_data says, and
// has it read from there as long as the result lives. Nothing where --resume=auto is going to find
// that nothing is left to do. Before ranks join: those of a machine wait for the one that copies,
// and other machines must not take that for silence. Throws kNoPermission as StageDatabase does;
// what is wrong with the solver is for its reader to say.
std::vector<std::unique_ptr<StagedCopy>> StageData(const Flags& flags);

}  // namespace trainer
