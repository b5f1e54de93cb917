#pragma once
// Reading files whose disk or server does not answer for a while: tries again, with longer and
// longer pauses, until --io_timeout is over.

#include <chrono>
#include <optional>
#include <stop_token>
#include <type_traits>

#include "trainer/base/file_error.h"

namespace trainer {

// How long a read is tried again. One answer for the whole process; zero: not at all.
constexpr std::chrono::seconds kDefaultIoTimeout{300};
void SetIoTimeout(std::chrono::milliseconds timeout);
std::chrono::milliseconds IoTimeout();

// All waits of this process end early when `asked` says so, which may be called from any thread at
// any time; null: they do not.
void EndIoWaitsWhen(bool (*asked)());
// Whether it says so now.
bool IoWaitsEnd();

// Waits of this thread end early when a stop is requested.
class IoStopScope {
 public:
  explicit IoStopScope(const std::stop_token& stop);
  ~IoStopScope();
  IoStopScope(const IoStopScope&) = delete;
  IoStopScope& operator=(const IoStopScope&) = delete;

 private:
  const std::stop_token* outer_;
};

// What the innermost IoStopScope of this thread looks at, or null: for whoever waits on its behalf.
const std::stop_token* IoStopOfThread();

// What is known of a file. One that this run has read and that is missing now has lost its server
// or its mount, or was moved away, and may come back; one that nobody has seen is missing.
enum class FileWas { kUnknown, kThere };

// Whether a call that ended with this number may succeed later.
bool MayPass(int errno_value, FileWas was);

// The tries of one read. The first failure of any thread logs a warning, and the last wait that
// ends well a line that reading goes on. Used by one thread.
class IoWait {
 public:
  IoWait() = default;
  ~IoWait();
  IoWait(const IoWait&) = delete;
  IoWait& operator=(const IoWait&) = delete;

  // In the handler of `error`, with which a try ended: returns after a pause when there is to be
  // another one. Else throws: `error` itself when trying again is no help, kIo when the time is
  // over or an end was asked for.
  void Pause(const FileError& error, FileWas was);
  // A try succeeded.
  void Succeeded();

 private:
  using Clock = std::chrono::steady_clock;

  static bool SleepUnlessAsked(Clock::duration pause);

  std::optional<Clock::time_point> since_;  // of the first failure
  Clock::duration pause_ = std::chrono::milliseconds(50);
};

// Calls `read`, and again while it throws a FileError that may pass. It must begin anew each time.
// `was`: what is known of the file, or a function that says so when a try has failed.
template <class Was, class Read>
auto ReadPatiently(const Was& was, const Read& read) -> decltype(read()) {
  const auto what_was = [&] {
    if constexpr (std::is_invocable_v<Was>) {
      return was();
    } else {
      return was;
    }
  };
  for (IoWait wait;;) {
    try {
      if constexpr (std::is_void_v<decltype(read())>) {
        read();
        return wait.Succeeded();
      } else {
        auto result = read();
        wait.Succeeded();
        return result;
      }
    } catch (const FileError& error) {
      wait.Pause(error, what_was());
    }
  }
}

}  // namespace trainer
