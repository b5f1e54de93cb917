#pragma once
// How a run of several ranks fails: all ranks end with the same exit code, and one of them writes
// one message.

#include <exception>
#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

// Thrown by calls of the communicator if another rank failed. That rank, or the one that found it
// dead, has written the message; this rank ends with the same code and writes nothing. It does not
// derive from Error, so that code that handles some errors does not catch it.
class PeerFailed : public std::exception {
 public:
  explicit PeerFailed(int code) : code_(code) {}
  int code() const { return code_; }
  const char* what() const noexcept override { return "another rank failed"; }

 private:
  int code_;
};

// Returns whether this process may write its error message. Called by a program that ends with an
// error. Returns false if another rank failed first; *code is then the exit code of that failure.
// Always returns true in a process without other ranks.
bool MayReportFailure(int* code);

// Returns the beginning of this process's error messages, "rank 1 (node7, process 4711): ", or ""
// in a process without other ranks.
std::string RankPrefix();

// Leaves the ranks and returns the exit code. Called last by any process that may be a rank. If
// World::Finish was not called before, it ends the other ranks.
int LeaveWorld(int code);

}  // namespace trainer
