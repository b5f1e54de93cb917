#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>

#include "mpi/mpi_rpc.h"
#include "node/control_block.h"
#include "node/waiter.h"
#include "trainer/base/ranks/shared_window.h"
#include "trainer/parallel/topology.h"

namespace trainer {

// The window of the ranks of a node. Its blocks are segments that the first rank of the node
// creates and the others map. Ranks of other nodes are reached by RPC.
class MemfdWindow final : public SharedWindow {
 public:
  // `rpc` is null if all ranks are on one node. `meet` is a barrier of all ranks. The arguments
  // must outlive the object.
  MemfdWindow(const ControlBlock& block, const Topology& topology, Waiter& waiter, MpiRpc* rpc,
              std::chrono::milliseconds peer_timeout, std::function<void()> meet)
      : block_(block),
        topology_(topology),
        waiter_(waiter),
        rpc_(rpc),
        peer_timeout_(peer_timeout),
        meet_(std::move(meet)) {}

  std::byte* Allocate(size_t bytes) override;
  int NodeOf(int rank) const override;
  bool IsSameNode(int rank) const override { return NodeOf(rank) == topology_.node; }
  Rpc* rpc() override { return rpc_; }
  void EnterAsync(bool needed) override;
  bool IsDead(int rank) override;
  void ThrowIfFailed() override { block_.ThrowIfFailed(); }
  void WaitFor(int rank, const std::function<bool()>& ready) override;
  void Notify(int rank) override;
  std::string NameOf(int rank) const override { return topology_.names[static_cast<size_t>(rank)]; }

  // Returns whether EnterAsync was called.
  bool IsAsync() const { return is_async_; }
  // Returns when each other rank of this node has finished or ended. Throws kPeerLost for a rank
  // that does neither within the time-out.
  void AwaitOthers();

 private:
  struct Silence;
  // Throws kPeerLost if `rank`, on this node, has ended or has made no progress for the time-out.
  // Looks at most ten times a second.
  void ThrowIfLost(int rank, Silence* silence);
  // Returns the status of a rank of this node.
  RankStatus& StatusOf(int rank) const;

  const ControlBlock& block_;
  const Topology& topology_;
  Waiter& waiter_;
  MpiRpc* rpc_;
  std::chrono::milliseconds peer_timeout_;
  std::function<void()> meet_;
  std::list<SharedSegment> blocks_;
  bool is_async_ = false;
};

}  // namespace trainer
