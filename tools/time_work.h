#pragma once
// What a net has to compute and move, and which share of the machine's peak that is in the time
// that it took.

#include <optional>

#include "time_report.h"

namespace trainer {

// A layer's work in one direction: floating-point operations and bytes, 0 where not counted.
struct Work {
  double flops = 0, bytes = 0;
  bool computes_fewer = false;  // floating-point operations than are counted
};
Work ForwardWork(const Net& net, int i);
// Backward computes the gradient of the weights and, if something before learns, that of the input.
Work BackwardWork(const Net& net, int i);

// Billions per second; nothing where nothing is counted or the clock saw nothing.
std::optional<double> Rate(double work, double ms);

// The share of the machine's peak, in percent: the time that the products or the memory alone would
// take, whichever is longer, in the time taken.
struct PeakShare {
  enum class Kind {
    kPercent,
    kUnknown,        // no work is counted, or the clock saw no time
    kCached,         // values came faster than memory delivers them, from the caches
    kFewerProducts,  // the layer computes fewer products than are counted, as Winograd's does
  };
  Kind kind = Kind::kUnknown;
  double percent = 0;  // at most 100
};
PeakShare OfPeak(const Work& work, double ms, const MachinePeak& peak);

// Raises the peak to the fastest rate of products that a layer of the net reached, since a peak
// that was measured while other programs ran is too low. Layers that may compute fewer products
// than are counted (Winograd's convolutions, cuDNN's) do not raise it.
void RaisePeak(const Net& net, Times* times);

// All layers forward and backward, and the update: work, and the least time that it takes at the
// machine's peaks, where each layer and direction waits for its products or for its memory alone.
// A layer counts at most with the time that it took.
struct LeastTime {
  Work work;
  double ms = 0;
};
LeastTime LeastTimeOf(const Net& net, const Times& times);

// What the layers queue in an iteration; nothing where the device does not say.
std::optional<int> OperationsOf(const Times& times);

}  // namespace trainer
