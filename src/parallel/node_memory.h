#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "node_block.h"
#include "trainer/base/peer_memory.h"
#include "waiter.h"

namespace trainer {

// That of the ranks of one machine, which are all.
class NodeMemory final : public PeerMemory {
 public:
  // `meet` returns when all ranks have called it. All must outlive the object.
  NodeMemory(const NodeBlock& block, int local, Waiter& waiter,
             const std::vector<std::string>& names, std::chrono::milliseconds peer_timeout,
             std::function<void()> meet)
      : block_(block),
        local_(local),
        waiter_(waiter),
        names_(names),
        peer_timeout_(peer_timeout),
        meet_(std::move(meet)) {}

  std::byte* Allocate(size_t bytes) override;
  void GoApart() override;
  bool HasEnded(int rank) override;
  void ThrowIfFailed() override;
  void Await(int rank, const std::function<bool()>& ready) override;
  void Ring(int rank) override;
  std::string NameOf(int rank) const override { return names_[static_cast<size_t>(rank)]; }

  bool IsApart() const { return apart_; }
  // Returns when each other rank has finished, or ended. Throws kPeerLost for one that does neither
  // within the time-out.
  void AwaitOthers();

 private:
  struct Silence;
  void LookAt(int rank, Silence* silence);

  const NodeBlock& block_;
  int local_;
  Waiter& waiter_;
  const std::vector<std::string>& names_;
  std::chrono::milliseconds peer_timeout_;
  std::function<void()> meet_;
  std::list<SharedMemory> blocks_;
  bool apart_ = false;
};

}  // namespace trainer
