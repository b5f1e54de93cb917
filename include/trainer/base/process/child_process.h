#pragma once
// Runs this program again as a child process whose output goes to a log file.

#include <string>
#include <vector>

namespace trainer {

// How a child process ended.
struct ExitStatus {
  int code = 0;            // the exit code; 0 if a signal ended the process
  int signal = 0;          // the signal that ended the process, or 0
  bool forwarded = false;  // whether this process had received `signal` and forwarded it
};

// Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 while it exists and forwards them to the
// child that runs. Only one object may exist, and only the main thread may use it.
class ChildProcess {
 public:
  ChildProcess();
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Starts this program with `arguments` and without input, appends its output and its errors to
  // the file `log`, and waits until it ends. Throws kResource if no process can be started, and the
  // errors of opening the log.
  ExitStatus Run(const std::vector<std::string>& arguments, const std::string& log);
  // Returns a signal that asks this process to end and has not been forwarded to a child, or 0.
  // SIGHUP does not count. The signal stays pending.
  int PendingStop() const;
};

}  // namespace trainer
