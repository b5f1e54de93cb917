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
  double without_core_ = 0;   // seconds, summed over the threads, until then
  double quiet_seconds_ = 0;  // seconds until the next note may be returned
};

}  // namespace trainer
