#pragma once
// The roofline model: compares the work of a layer with the machine's peak.

#include <optional>

#include "trainer/analysis/timing/net_profile.h"

namespace trainer {

// Returns billions per second. No value if no work is counted or the clock measured no time.
std::optional<double> Rate(double work, double ms);

// The roofline time in percent of the measured time. The roofline time is what the multiplications
// or the memory traffic alone take at the machine's peak, whichever is longer.
struct RooflineFraction {
  enum class Kind {
    kPercent,
    kUnknown,        // no work is counted, or the clock measured no time
    kCached,         // values came from the caches, faster than memory delivers them
    kFewerProducts,  // the layer computes fewer products than are counted, as Winograd's does
  };
  Kind kind = Kind::kUnknown;
  double percent = 0;  // at most 100
};
// Compares the work with the time that it took. A share above 100 % is not a percentage: it means
// fewer products, or values from the caches.
RooflineFraction FractionOfPeak(const OpCost& cost, double ms, const MachinePeak& peak);

// Raises the peak to the fastest rate of products that a layer reached. Layers that may compute
// fewer products than are counted (Winograd, cuDNN) do not raise it.
void RaisePeak(NetProfile* profile);

// The work of an iteration, and the least time for it at the machine's peak: the sum over passes,
// layers, directions and the update. A layer counts with the longer of the times for its products
// and for its memory traffic, and with at most its measured time.
struct RooflineTime {
  OpCost cost;
  double arithmetic_ms = 0;  // of layers whose products take longer than their memory traffic
  double memory_ms = 0;      // of all other layers, and of the update
  double Ms() const { return arithmetic_ms + memory_ms; }
};
// Returns the roofline time of an iteration, from the shortest time of each layer.
RooflineTime RooflineTimeOf(const NetProfile& profile);

// The shares of an iteration's time, in percent. Their sum is 100.
struct StepShares {
  double arithmetic = 0, memory = 0, rest = 0;
};
// Compares RooflineTimeOf with the measured time of an iteration. A pass can be faster than its
// layers timed one by one; if RooflineTimeOf is longer than the iteration, the rest is 0. No value
// without a peak or a measured time.
std::optional<StepShares> StepSharesOf(const NetProfile& profile);

// Returns the operations that all layers enqueue in an iteration. No value if the device does not
// count.
std::optional<int> CountOperations(const NetProfile& profile);

}  // namespace trainer
