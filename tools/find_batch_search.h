#pragma once
// Which batches of a solver fit into memory, and how fast they are.

#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trainer/analysis/timing/timing_samples.h"
#include "trainer/backend/device.h"
#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"

namespace trainer {

struct BatchSearch {
  size_t room = 0;                        // bytes that the run may take
  bool recomputes = false;                // outputs may be computed again so that it does
  uint32_t most = 0;                      // the largest batch that is of interest
  int iterations = 0;                     // measured for each batch in each round
  std::chrono::duration<double> time{0};  // for all of them, about
  MemoryMode memory = MemoryMode::kShared;
};

// One batch, as the data layers' batch_size.
struct BatchFigures {
  uint32_t batch = 0;
  size_t bytes = 0;            // that the run takes as planned
  int computed_again = 0;      // outputs in backward
  bool ran_out = false;        // of memory when it was run, whatever the plan says
  TimingSamples samples = {};  // of all rounds; none: not run
  int64_t records = 0;         // of an iteration

  bool runs() const { return !samples.empty() && !ran_out; }
  // The best of an iteration: what others took of the machine meanwhile only ever adds to it.
  double Ms() const { return samples.Min(); }
  double ImagesPerSecond() const { return 1e3 * static_cast<double>(records) / Ms(); }
  // By how much of the best the median is above it.
  double Spread() const { return samples.Median() / Ms() - 1; }
};

struct BatchResults {
  std::vector<BatchFigures> batches;  // that were planned to fit and run, smallest first
  uint32_t given = 0;                 // by the solver's net
  uint32_t largest = 0;               // that fits, as planned, up to BatchSearch::most
  size_t largest_bytes = 0;
  bool most_fits = false;  // the largest is BatchSearch::most
  bool proved = false;     // the largest was run
  int64_t records = 0;     // of an epoch; 0: not known
  // The largest batch that is recommended: an iteration reads at most a tenth of the records.
  uint32_t most_advised = std::numeric_limits<uint32_t>::max();

  // The fastest, and the fastest of at most `most`; null where none was run.
  const BatchFigures* Fastest() const;
  const BatchFigures* FastestUpTo(uint32_t most) const;
  // The smallest that is nearly as fast as the fastest of at most `most_advised`, which leaves
  // memory and steps to learn in; null where no such batch was run.
  const BatchFigures* Best() const;
};

// Plans batches until it knows the largest that fits, then trains for a few iterations with 1, 2,
// 4, ... times the smallest until they get no faster, and with the largest where that is a matter
// of seconds. Those that may be the fastest are run again in two more rounds, each of which goes
// through all of them, so that a minute in which somebody else computes decides nothing. `spec` is
// changed meanwhile and has its own batch again afterwards. Throws kResource
// where no batch fits.
BatchResults SearchBatches(const BatchSearch& search, const Device& device, SolverSpec* spec);

// A table, and sentences of what to take.
std::string ToText(const BatchResults& report, const BatchSearch& search, const SolverSpec& spec);
Json ToJson(const BatchResults& report, const BatchSearch& search);

}  // namespace trainer
