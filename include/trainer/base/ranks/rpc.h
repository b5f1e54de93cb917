#pragma once
// Remote procedure calls between ranks of different nodes, for strategies whose ranks do not make
// collective calls.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace trainer {

// One rank's end. The training thread makes the calls; another thread runs the handlers, so a rank
// answers while it computes.
class Rpc {
 public:
  using Bytes = std::vector<std::byte>;
  // Writes the reply to a request of rank `from`. Returns false if it cannot answer yet; then it is
  // called again soon. It may take as long as copying its data, and must not wait for a rank of
  // another node.
  using Handler = std::function<bool(int from, std::span<const std::byte> request, Bytes* reply)>;

  virtual ~Rpc() = default;
  // Registers a handler and returns its method number. All ranks register the same methods in the
  // same order, before the first call.
  virtual int Register(Handler answer) = 0;
  // Unregisters all handlers; none is running when this returns. Requests that arrive later stay
  // unanswered.
  virtual void Unregister() = 0;
  // Sends a request and returns the number of the call. Requests to one rank arrive in the order of
  // the calls.
  virtual uint64_t CallAsync(int rank, int method, Bytes request) = 0;
  // Waits for the reply to a call and returns it. Throws PeerFailed if a rank failed. A rank that
  // gives no sign of life for too long ends the run.
  virtual Bytes Wait(uint64_t call) = 0;
  // Sends a request and waits for the reply. Throws as Wait does.
  Bytes Call(int rank, int method, Bytes request) {
    return Wait(CallAsync(rank, method, std::move(request)));
  }
};

}  // namespace trainer
