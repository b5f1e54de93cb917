#pragma once
// Memory that the ranks of a node share, and messages to ranks of other nodes, for strategies whose
// ranks do not make collective calls.

#include <cstddef>
#include <functional>
#include <string>

#include "trainer/base/ranks/rpc.h"

namespace trainer {

// One rank's end, like a shared-memory window of MPI. Used by the training thread.
class SharedWindow {
 public:
  virtual ~SharedWindow() = default;
  // Allocates a block that all ranks of this node map. It is zero at first and stays until the end.
  // Collective: all ranks allocate the same number of blocks in the same order, and the ranks of a
  // node the same sizes.
  virtual std::byte* Allocate(size_t bytes) = 0;
  // Returns the node of a rank. Nodes are numbered from 0, the node of rank 0.
  virtual int NodeOf(int /*rank*/) const { return 0; }
  // Returns whether a rank is on this rank's node.
  virtual bool IsSameNode(int /*rank*/) const { return true; }
  // Calls to ranks of other nodes; null if there is one node.
  virtual Rpc* rpc() { return nullptr; }
  // States that the ranks make no collective calls from here on. A rank that dies then does not end
  // the other ranks of its node, unless it is rank 0 or `needed`.
  virtual void EnterAsync(bool needed) = 0;
  // Returns whether the process of a rank has ended. Returns false for ranks of other nodes, about
  // which nothing is known.
  virtual bool IsDead(int rank) = 0;
  // Throws PeerFailed if a rank has reported a failure.
  virtual void ThrowIfFailed() = 0;
  // Calls `ready` until it returns true: at first without a pause, then after each Notify for this
  // rank and about twice a second. Throws PeerFailed if a rank failed, and kPeerLost if `rank`, for
  // which this one waits, has ended or has given no sign of life for too long.
  virtual void WaitFor(int rank, const std::function<bool()>& ready) = 0;
  // Says that this rank is alive, and wakes a rank of this node that waits. Handlers may call it,
  // too.
  virtual void Notify(int rank) = 0;
  // Returns the name of a rank in messages: "rank 1 (node7, process 4711)".
  virtual std::string NameOf(int rank) const = 0;
};

}  // namespace trainer
