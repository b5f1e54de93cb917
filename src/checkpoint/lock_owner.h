#pragma once
// The owner of a lock as recorded in its file, and whether that process still runs.

#include <string>

namespace trainer {

struct LockOwner {
  enum class Life { kRuns, kGone, kUnknown };

  std::string host;     // name of the computer, for people
  std::string machine;  // boot and process-number space, within which process numbers are unique
  int pid = 0;
  std::string started;  // start of the process, in ticks since the boot; "" if /proc does not tell
  std::string job;      // job of the batch system, or ""
  std::string token;    // random, so that no two locks are alike

  // Returns this process as the owner, with a new token.
  static LockOwner Self();
  // Parses the result of Text(). Returns an owner of pid 0 for any other text.
  static LockOwner Parse(const std::string& text);

  // Returns one "name=value" per line.
  std::string Text() const;
  // Returns a description for people: "process 123 on host a (batch job 77)".
  std::string Describe() const;
  // Returns whether its process runs: kGone if it has ended, or if the process with its number
  // started at another time. Returns kUnknown for a process of another computer, boot or
  // process-number space.
  Life CheckLiveness() const;
};

}  // namespace trainer
