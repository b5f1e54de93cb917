#pragma once
// Says when other programs take the cores that a run computes on.

#include <string>

namespace trainer {

class CoreShare {
 public:
  // To be called at each report, with the seconds since the last one. A sentence when the threads
  // were without a core for a good part of the last second or more, at most every ten minutes; else
  // "".
  std::string Note(double seconds);

 private:
  double seconds_ = 0;        // since the share was last computed
  double without_core_ = 0;   // of all threads, until then; seconds
  double quiet_seconds_ = 0;  // for how long no further note is due
};

}  // namespace trainer
