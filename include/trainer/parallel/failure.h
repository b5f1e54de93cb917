#pragma once
// How a run of several ranks fails: all ranks end with one exit code, and one of them writes one
// message.

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

// Called by a program that ends with an error: whether this process may write the message. False if
// another rank failed before; *code is then its exit code. True if there are no other ranks.
bool MayReportFailure(int* code);

// The beginning of this process's error messages: "rank 1 (node7, process 4711): "; "" if there are
// no other ranks.
std::string RankPrefix();

// The last call of a process that may be a rank. Without World::Finish before, it ends the other
// ranks. Returns the exit code.
int LeaveWorld(int code);

}  // namespace trainer
