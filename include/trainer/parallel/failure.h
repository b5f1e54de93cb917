#pragma once
// How a run of several ranks ends when one of them cannot go on: all end with one exit code and one
// message.

#include <exception>
#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

// Thrown by the calls of a group when another rank failed. That one, or who found it dead, has said
// so: this rank ends with the same code and says nothing. It is no Error, which code that mends
// some errors might take for one of its own.
class EndedByPeer : public std::exception {
 public:
  explicit EndedByPeer(int code) : code_(code) {}
  int code() const { return code_; }
  const char* what() const noexcept override { return "another rank failed"; }

 private:
  int code_;
};

// Of a program that ends with an error: whether this process shall say so. False where another rank
// has failed before; `*code` is then its exit code. True for a run alone.
bool IsFirstToFail(int* code);

// What begins an error message of this process: "rank 1 (node7, process 4711): "; "" for a run
// alone.
std::string RankPrefix();

// The last call of a process that may be a rank: without World::Finish before it ends the other
// ranks. Returns the exit code.
int LeaveWorld(int code);

}  // namespace trainer
