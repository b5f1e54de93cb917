#pragma once
// Detects that other programs use the cores of the run.

#include <string>

namespace trainer {

class CoreShare {
 public:
  // Called at each report, with the seconds since the last one. Returns a sentence if the threads
  // had no core for much of the last second or longer, at most every ten minutes; else "".
  std::string Note(double seconds);

 private:
  double seconds_ = 0;        // since the share was last computed
  double without_core_ = 0;   // of all threads, until then; seconds
  double quiet_seconds_ = 0;  // for how long no further note is due
};

}  // namespace trainer
