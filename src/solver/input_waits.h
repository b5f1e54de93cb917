#pragma once
// Notes that training waits for its data, and why.

#include <map>
#include <string>

#include "trainer/net/net.h"

namespace trainer {

// The work of one data layer's threads in a period. Times are in seconds, summed over the threads.
struct InputWork {
  std::string layer;
  double seconds = 0;  // length of the period
  double waited = 0;   // how long the net waited for this layer
  double read = 0, decode = 0, transform = 0;
  int threads = 1;  // that decode
  int cores = 1;    // that this process may use
};

// Says what part of the time a run waited for a data layer, which stage is the bottleneck, and what
// to change. "" if the wait was shorter than 5 % of the period.
std::string DescribeInputWork(const InputWork& work);

// Watches the data layers of the net in training.
class InputWaits {
 public:
  // Call at each report with the seconds since the last one. Returns DescribeInputWork of the layer
  // that the net waited for longest, over periods of at least five seconds and at most once a
  // minute; else "".
  std::string Note(const Net& net, double seconds);

 private:
  std::map<std::string, InputWork> before_;  // by layer, the sums at the start of this period
  double seconds_ = 0;                       // since then
  double quiet_seconds_ = 0;                 // time until the next note may come
};

}  // namespace trainer
