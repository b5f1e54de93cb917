#pragma once
// Questions between ranks of different machines, for those who do not wait for each other's calls.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace trainer {

// One rank's side of it. Used by the thread that trains; answers are given by another one, so that
// a rank that computes answers, too.
class Rpc {
 public:
  using Bytes = std::vector<std::byte>;
  // Makes the reply to what rank `from` asks. False: not now, it is called again soon. May take no
  // longer than a copy of what it is about, and not wait for a rank of another machine.
  using Answer = std::function<bool(int from, std::span<const std::byte> request, Bytes* reply)>;

  virtual ~Rpc() = default;
  // What this rank answers from now on. Every rank gives the same kinds in the same order, before
  // anybody asks; returns the number of the kind.
  virtual int Serve(Answer answer) = 0;
  // Forgets all answers, none of which is under way when this returns. Questions stay open.
  virtual void Forget() = 0;
  // Sends a question and returns its ticket. Those to one rank arrive in their order.
  virtual uint64_t Begin(int rank, int kind, Bytes request) = 0;
  // Returns the reply when it is there. Throws EndedByPeer where a rank failed; one that does
  // nothing for too long ends the run.
  virtual Bytes Await(uint64_t ticket) = 0;
  Bytes Ask(int rank, int kind, Bytes request) {
    return Await(Begin(rank, kind, std::move(request)));
  }
};

}  // namespace trainer
