#pragma once
// --local_copy: a run reads its data sets from copies on this host.

#include <memory>
#include <vector>

#include "trainer/datasets/local_copy.h"
#include "trainer/run/solver_source.h"

namespace trainer {

// Copies the data sets that the Data, HDF5Data and ImageData layers of the solver's nets read. The
// layers read the copies as long as the result exists. Copies nothing if options.folder is "off",
// or if the run `resumes` by --resume=auto and is finished already. Call before ranks join: ranks
// of a host wait for the one that copies, and other hosts must not take that for silence. Throws
// kNoPermission as CopyDatabaseLocally does. Errors in the solver are left to its next reader.
std::vector<std::unique_ptr<LocalCopy>> CopyDataLocally(const SolverSource& solver,
                                                        const LocalCopyOptions& options,
                                                        bool resumes);

}  // namespace trainer
