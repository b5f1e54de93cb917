#pragma once
// This program again, as a child that writes a log.

#include <string>
#include <vector>

namespace trainer {

// How it ended.
struct ChildEnd {
  int code = 0;            // its exit code, where no signal ended it
  int signal = 0;          // that ended it, or 0
  bool handed_on = false;  // it was one that this process had got
};

// Hands SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 on to the child that runs while it lives. One
// object at a time; the main thread alone.
class Children {
 public:
  Children();
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Starts this program with `arguments`, without input, its output and errors at the end of the
  // file `log`; waits for its end. Throws kResource, and the errors of the log.
  ChildEnd Run(const std::vector<std::string>& arguments, const std::string& log);
  // A signal that means the end, and that no child has got: its number, or 0.
  int PendingStop() const;
};

}  // namespace trainer
