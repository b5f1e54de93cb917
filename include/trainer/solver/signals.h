#pragma once
// Turns signals into requests, which the training loop polls between its steps.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/error/error.h"

namespace trainer {

enum class Request { kNone, kSnapshot, kStop };

// Parses "stop", "snapshot" or "none". Throws kUsage naming the flag and the three words.
Request ParseSignalEffect(const std::string& flag, const std::string& word);

// Handles SIGINT, SIGHUP, SIGTERM, SIGUSR1 and SIGUSR2 while it exists. At most one object may
// exist, and the main thread makes it, because Linux delivers a process's signals to that thread
// first.
//
// Before BeginRun there is nothing to finish or to save, so a signal that means "stop" ends the
// process at once, as if it were not handled. SIGUSR1 and SIGUSR2, with which batch systems warn of
// the time limit, end it with stop_exit_code instead: nothing is lost and the job may be queued
// again.
//
// After BeginRun signals only set a flag. If the same SIGINT, SIGHUP or SIGTERM that means "stop"
// comes again more than half a second later, it ends the process at once; within that time it
// counts once, because batch systems signal both the ranks and their launcher, which forwards it.
// Signals of different kinds never end the process: SIGTERM after SIGUSR1 lets the last snapshot be
// written.
class SignalWatch {
 public:
  // The request that each signal makes.
  struct Effects {
    Request sigint = Request::kStop;
    Request sighup = Request::kSnapshot;
    Request sigterm = Request::kStop;
    Request sigusr1 = Request::kStop;
    Request sigusr2 = Request::kStop;
    int stop_exit_code = static_cast<int>(ErrorCode::kStopped);  // for SIGUSR1/2 before BeginRun
  };

  explicit SignalWatch(const Effects& effects);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Called when iterations begin.
  void BeginRun();
  // Returns the strongest request since the last call and clears a snapshot request; a stop request
  // stays. Any thread may call it.
  Request Poll();
  // Called when several ranks have agreed on a snapshot. A launcher signals all ranks, so this rank
  // ignores the same signal for the next half second.
  void NoteSnapshot();
  // Returns whether a stop is requested. Clears nothing.
  bool StopRequested() const;
  // Returns the name of the first signal that asked for the stop, such as "SIGUSR1", or "".
  std::string StopSignal() const;
  // Returns when the first SIGTERM asked for the stop, alone or after other signals. A batch system
  // kills the process a fixed time after it.
  std::optional<std::chrono::steady_clock::time_point> TermTime() const;

 private:
  std::vector<char> stack_;
};

}  // namespace trainer
