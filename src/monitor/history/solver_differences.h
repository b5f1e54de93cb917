#pragma once
// The differences between two solvers with their nets.

#include <vector>

#include "solver.pb.h"
#include "trainer/monitor/run_comparison.h"

namespace trainer {

// Compares two solvers that contain their nets, as solver.prototxt of a run does. A field with its
// default value equals one that is not set. Layers are paired by their names and phases. The paths
// of data and weights and the seed are harmless, because the card has checksums and the seed
// itself. The iterations at which a run displays and saves are harmless, too.
std::vector<RunDifference> CompareSolvers(const caffe::SolverParameter& a,
                                          const caffe::SolverParameter& b);

}  // namespace trainer
