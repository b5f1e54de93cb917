#pragma once
// The owner of a lock, as its file says, and whether that process still runs.

#include <string>

namespace trainer {

struct LockOwner {
  enum class Life { kRuns, kGone, kUnknown };

  std::string host;     // name of the computer, for people
  std::string machine;  // boot and process-number space: within one, process numbers mean something
  int pid = 0;
  std::string started;  // of the process, in ticks since the boot; "" where /proc does not tell
  std::string job;      // of the batch system, or ""
  std::string token;    // random, so that no two locks are alike

  // This process, with a new token.
  static LockOwner Self();
  // What Text() gave. An owner of pid 0 for anything else.
  static LockOwner Parse(const std::string& text);

  // One "name=value" a line.
  std::string Text() const;
  // "process 123 on host a (batch job 77)"
  std::string Describe() const;
  // Whether its process runs; kUnknown for a process of another computer.
  Life CheckLiveness() const;
};

}  // namespace trainer
