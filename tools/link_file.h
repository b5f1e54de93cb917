#pragma once
// What `trainer bench-comm --json=FILE` writes and `trainer plan --link=FILE` reads.

#include <string>

#include "trainer/scaling/measured.h"

namespace trainer {

// `mpi_seconds` has MPI_Allreduce's time of each sum, and is empty without MPI.
void WriteSums(const std::string& path, const MeasuredSums& measured,
               const std::vector<double>& mpi_seconds);

// Throws as ReadFile does, and kData where it is no such file.
MeasuredSums ReadSums(const std::string& path);

}  // namespace trainer
