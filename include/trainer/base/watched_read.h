#pragma once
// Reads that do not come back, in threads that nobody else waits for: above all those of the main
// thread before a run begins.

#include <pthread.h>

#include <string>

#include "trainer/base/stall.h"

namespace trainer {

class Error;

// Ends the process with the error. Called in a thread of its own, while the one that reads hangs.
using EndOnHang = void (*)(const Error& error);

// From here on a read that does not come back within --io_timeout ends the process so. Before, and
// with null, nobody looks.
void EndHangingReadsWith(EndOnHang end);

// While it lives, this thread reads `path`, or what that text names, and must come back. Of several
// the innermost is named.
// A thread of an IoStopScope has somebody who waits for it and can do better; there this does
// nothing.
class WatchedRead {
 public:
  explicit WatchedRead(const std::string& path);
  ~WatchedRead();
  WatchedRead(const WatchedRead&) = delete;
  WatchedRead& operator=(const WatchedRead&) = delete;

  // For the thread that looks.
  const std::string& path() const { return path_; }
  pthread_t thread() const { return thread_; }
  bool Hangs();

 private:
  std::string path_;
  pthread_t thread_;
  StallClock clock_;
  bool listed_;
};

}  // namespace trainer
