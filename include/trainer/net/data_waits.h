#pragma once
// How far the data of a net is read, and how long that kept it waiting.

#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// How long the net has waited for its data layers' batches, in seconds.
double SecondsWaitedForData(const Net& net);

// What one data layer's threads did in some time.
struct DataWork {
  std::string layer;
  double seconds = 0, waited = 0;            // all; that the net waited for this layer
  double read = 0, decode = 0, augment = 0;  // of all threads together, as far as measured
  int threads = 1, cores = 1;                // that decode; that this process may use
};

// Says that a run waited for a data layer: for what share of the time, which stage keeps it, and
// what to change. "" where the share is not worth a line.
std::string DescribeWork(const DataWork& work);

// Watches the data layers of a net that is trained.
class DataWaits {
 public:
  // To be called at each report, with the seconds since the last one. A line when a good part of
  // the last five seconds or more passed in waiting, at most once a minute; else "".
  std::string Note(const Net& net, double seconds);

 private:
  std::vector<DataWork> before_;  // of each data layer, its sums at the last note
  double seconds_ = 0;            // since then
  double quiet_seconds_ = 0;      // for how long no further note is due
};

// How often its first layer that reads records came back to the first one; -1 without such a layer.
int64_t EpochOf(const Net& net);

// The images or records of a pass: the first axis of what that layer gives out; 0 without one.
int64_t RecordsPerPass(const Net& net);

}  // namespace trainer
