#pragma once

#include "trainer/backend/device/device.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {

// Describes this start of the run: the program and its command line, the files, the host and its
// hardware, the libraries, and the batch job, if any.
RunInfo MakeRunInfo(const SolverSpec& spec, const Device& device, const Rank& rank);

}  // namespace trainer
