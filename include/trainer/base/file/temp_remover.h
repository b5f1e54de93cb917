#pragma once
// Removes the temporary files of a verb that a signal ends.

#include <string>
#include <vector>

namespace trainer {

// From its construction on, a SIGINT, SIGTERM or SIGHUP that would end the process first removes
// the temporary files and folders (TempPathFor) of this process in `folders`, and then ends the
// process as if it were not handled. Construct it before other threads are started, once per
// process.
class TempRemover {
 public:
  explicit TempRemover(const std::vector<std::string>& folders);
  // Waits for the end of the process if a signal has arrived: the caller may be failing because its
  // temporary file has just been removed, and this failure must not be reported.
  ~TempRemover();
  TempRemover(const TempRemover&) = delete;
  TempRemover& operator=(const TempRemover&) = delete;
};

}  // namespace trainer
