#pragma once
// Flags of training that other verbs pass on to it.

#include "trainer/cli/flag_set.h"

namespace trainer {

Flag MaxWallFlag();
// --run; without a value it means the folder <snapshot_prefix>_run.
Flag RunFolderFlag();

}  // namespace trainer
