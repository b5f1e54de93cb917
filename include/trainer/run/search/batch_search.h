#pragma once
// Searches the batch size of a run: which batches fit into memory, and how fast they are.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trainer/analysis/timing/timing_samples.h"
#include "trainer/backend/device/device.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// The limits of a search, in memory and time.
struct BatchSearchOptions {
  size_t room = 0;                        // bytes that the run may use
  bool recomputes = false;                // the backward pass may recompute outputs to fit
  uint32_t max_batch = 4096;              // the largest batch to try
  int iterations = 10;                    // measured for each batch in each round
  std::chrono::duration<double> time{0};  // for all measurements together, approximately
  BufferReuse memory_mode = BufferReuse::kShared;
};
// Sets the room and `recomputes` from `memory`, the value of --memory. Throws as ParseMemoryLimit.
BatchSearchOptions MakeBatchSearchOptions(const std::string& memory, BufferReuse mode,
                                          const Device& device);

// One batch, as the batch_size of the data layers.
struct BatchTrial {
  uint32_t batch = 0;
  size_t bytes = 0;            // memory estimate of the run
  int recomputed = 0;          // outputs that the backward pass recomputes
  bool ran_out = false;        // the run did not fit, whatever the estimate says
  TimingSamples samples = {};  // of all rounds; empty: not run
  int64_t records = 0;         // of an iteration

  bool runs() const { return !samples.empty() && !ran_out; }
  // Returns the shortest iteration, because other programs can only make an iteration longer.
  double Ms() const { return samples.Min(); }
  double ImagesPerSecond() const { return 1e3 * static_cast<double>(records) / Ms(); }
  // Returns by which fraction the median iteration is longer than the shortest.
  double Spread() const { return samples.Median() / Ms() - 1; }
};

// The measured batches, and the largest one that fits.
struct BatchSearchResult {
  std::vector<BatchTrial> trials;  // the batches that were run, smallest first
  uint32_t given = 0;              // the batch_size of the solver's net
  uint32_t largest = 0;            // the largest batch that fits, up to max_batch
  size_t largest_bytes = 0;
  bool max_fits = false;  // `largest` is max_batch
  bool proved = false;    // `largest` was run
  int64_t records = 0;    // of an epoch; 0: unknown
  // The largest batch that is recommended: an iteration reads at most a tenth of the records.
  uint32_t most_advised = std::numeric_limits<uint32_t>::max();

  // Returns the fastest batch; null if none was run.
  const BatchTrial* Fastest() const;
  // Returns the fastest batch of at most `most`; null if none was run.
  const BatchTrial* FastestUpTo(uint32_t most) const;
  // Returns the smallest batch that is nearly as fast as the fastest of at most `most_advised`,
  // because a smaller batch leaves memory and makes more steps; null if none was run.
  const BatchTrial* Best() const;
};

// Estimates the memory of larger and larger batches until one does not fit. Then trains for a few
// iterations with 1, 2, 4, ... times the smallest batch until the speed no longer grows, and with
// the largest batch if that takes seconds only. The fastest candidates run in two more rounds
// through all of them, so that a minute in which another program computes decides nothing. Changes
// the batch of `spec` meanwhile and restores it. Throws kResource if no batch fits, and kUsage if
// the net has no batch_size.
BatchSearchResult SearchBatchSize(const BatchSearchOptions& options, const Device& device,
                                  SolverSpec* spec);

// Applies --batch=auto. A run that resumes keeps the batch in its
// <snapshot_prefix>_resolved.prototxt, if that exists; any other run gets the best batch of a short
// search.
void ApplyBestBatch(const BatchSearchOptions& options, const Device& device, bool resumes,
                    SolverSpec* spec);

}  // namespace trainer
