#pragma once
// Signals as requests, which the training loop polls between its steps.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/error/error.h"

namespace trainer {

enum class Request { kNone, kSnapshot, kStop };

// Reads "stop", "snapshot" or "none"; throws kUsage naming the flag and the three words.
Request ParseSignalEffect(const std::string& flag, const std::string& word);

struct SignalEffects {
  Request sigint = Request::kStop;
  Request sighup = Request::kSnapshot;
  Request sigterm = Request::kStop;
  Request sigusr1 = Request::kStop;
  Request sigusr2 = Request::kStop;
  int stop_exit_code = static_cast<int>(ErrorCode::kStopped);  // of SIGUSR1, 2 before BeginRun
};

// While it lives, it handles SIGINT, SIGHUP, SIGTERM, SIGUSR1 and SIGUSR2. One object at a time,
// made by the thread that Linux gives a process's signals to: the main one. Before BeginRun there
// is nothing to finish or to save: a signal that means "stop" ends the process at once, as if
// unhandled; but SIGUSR1 and SIGUSR2, with which batch systems warn of the time limit, end it with
// stop_exit_code, since nothing is lost and the job may be queued again. After it they only set a
// flag. A SIGINT, SIGHUP or SIGTERM that means "stop" ends the process at once, as if unhandled, if
// the same signal came more than half a second before; within that time it counts once, since batch
// systems signal launchers, which forward it, and ranks alike. Signals of different kinds never end
// the process: SIGTERM after SIGUSR1 lets the last snapshot be written.
class SignalWatch {
 public:
  explicit SignalWatch(const SignalEffects& effects);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Called when iterations begin.
  void BeginRun();
  // Returns the strongest request since the last call and clears a snapshot request; a stop request
  // stays. Any thread may call it.
  Request Poll();
  // Called when several ranks have agreed on a snapshot. A launcher signals all ranks, so the same
  // signal is ignored if it reaches this rank within half a second.
  void NoteSnapshot();
  // Whether a stop is requested. Clears nothing.
  bool StopRequested() const;
  // The first signal that asked for the stop: "SIGUSR1", or "".
  std::string StopSignal() const;
  // When the first SIGTERM asked for the stop, alone or after other signals. A batch system kills
  // the process a fixed time after it.
  std::optional<std::chrono::steady_clock::time_point> TermTime() const;

 private:
  std::vector<char> stack_;
};

}  // namespace trainer
