#pragma once
// Signals as requests that the training loop asks for between its steps.

#include <string>

namespace trainer {

enum class Request { kNone, kSnapshot, kStop };

// Reads "stop", "snapshot" or "none"; throws kUsage naming the flag and the three words.
Request ParseSignalEffect(const std::string& flag, const std::string& word);

struct SignalEffects {
  Request sigint = Request::kStop;
  Request sighup = Request::kSnapshot;
  Request sigterm = Request::kStop;
  Request sigusr1 = Request::kStop;
};

// While it lives, SIGINT, SIGHUP, SIGTERM and SIGUSR1 only set a flag. A second SIGINT or SIGTERM
// ends the process at once, as if unhandled. One object at a time.
class SignalWatch {
 public:
  explicit SignalWatch(const SignalEffects& effects);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The strongest request since the last call, and forgets a snapshot request. A stop request
  // stays. Async-signal-safe state only; any thread.
  Request Poll();
  // Whether a stop is asked for, forgetting nothing.
  bool StopRequested() const;
  // The signal that asked for the stop: "SIGTERM".
  std::string StopSignal() const;
};

}  // namespace trainer
