#pragma once
// What a net has to compute and move, and which share of the machine's peak that is in the time
// that it took.

#include <optional>

#include "time_report.h"

namespace trainer {

// A layer's work in one direction: floating-point operations and bytes, 0 where not counted.
struct Work {
  double flops = 0, bytes = 0;
};
Work ForwardWork(const Net& net, int i);
// Backward computes the gradient of the weights and, if something before learns, that of the input.
Work BackwardWork(const Net& net, int i);

// Billions per second; nothing where nothing is counted or the clock saw nothing.
std::optional<double> Rate(double work, double ms);

// The share of the machine's peak, in percent: the time that the products or the memory alone would
// take, whichever is longer, in the time taken. Nothing where values came faster than memory gives
// them, from caches, which have no such peak. The peak is measured at another moment: products that
// were faster then ran at it.
std::optional<double> OfPeak(const Work& work, double ms, const MachinePeak& peak);

// All layers forward and backward, and the update: work, and the least time that it takes at the
// machine's peaks, where each layer and direction waits for its products or for its memory alone.
struct LeastTime {
  Work work;
  double ms = 0;
};
LeastTime LeastTimeOf(const Net& net, const Times& times);

// What the layers queue in an iteration; nothing where the device does not say.
std::optional<int> OperationsOf(const Times& times);

}  // namespace trainer
