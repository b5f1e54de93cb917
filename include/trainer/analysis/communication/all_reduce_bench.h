#pragma once
// Benchmarks the all-reduce of gradients over the ranks of a run.

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/analysis/communication/all_reduce_results.h"
#include "trainer/analysis/timing/timing_samples.h"
#include "trainer/parallel/compression_type.h"
#include "trainer/parallel/world.h"

namespace trainer {

// The sizes and repetitions of a benchmark.
struct AllReduceBenchOptions {
  size_t max_bytes = size_t{256} << 20;          // the largest buffer
  int rounds = 15;                               // of each size; fewer on a slow link
  CompressionType wire = CompressionType::kF32;  // the form of gradients between machines
};

// The times of one size: our all-reduce, and MPI_Allreduce (empty without MPI).
struct AllReduceTiming {
  size_t bytes = 0;
  TimingSamples own, mpi;
};

// The timings of all sizes, and the results for `trainer plan`.
struct AllReduceBenchReport {
  std::string ranks;  // "2 ranks on 1 machine; sums through shared memory ..."
  std::string wire;   // a sentence about the form of gradients between machines, or ""
  std::vector<AllReduceTiming> timings;
  AllReduceResults results;

  // Returns the median of MPI_Allreduce for each size, in seconds. Empty without MPI.
  std::vector<double> MpiSeconds() const;
};

// Sums buffers of 4 B, 16 B, ... up to `max_bytes`, by our all-reduce and MPI's in turns. All ranks
// call it. Each buffer is written again before each sum, as a backward pass does. Throws kInternal
// for a wrong sum.
AllReduceBenchReport BenchAllReduce(World& world, const AllReduceBenchOptions& options);

// Returns a table of the timings, and the latency and bandwidth of the link or the memory that
// follow from them. Lines have at most 80 columns.
std::string ToText(const AllReduceBenchReport& report);

}  // namespace trainer
