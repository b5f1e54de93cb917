#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "mpi_post.h"
#include "node_block.h"
#include "node_map.h"
#include "trainer/base/ranks/shared_window.h"
#include "waiter.h"

namespace trainer {

class NodeMemory final : public SharedWindow {
 public:
  // `post` is null where all ranks are on one machine. `meet` returns when all ranks have called
  // it. All must outlive the object.
  NodeMemory(const NodeBlock& block, const NodeMap& map, Waiter& waiter, MpiPost* post,
             const std::vector<std::string>& names, std::chrono::milliseconds peer_timeout,
             std::function<void()> meet)
      : block_(block),
        map_(map),
        waiter_(waiter),
        post_(post),
        names_(names),
        peer_timeout_(peer_timeout),
        meet_(std::move(meet)) {}

  std::byte* Allocate(size_t bytes) override;
  int MachineOf(int rank) const override;
  bool IsNear(int rank) const override { return MachineOf(rank) == map_.node; }
  Rpc* post() override { return post_; }
  void GoApart(bool needed) override;
  bool HasEnded(int rank) override;
  void ThrowIfFailed() override;
  void Await(int rank, const std::function<bool()>& ready) override;
  void Ring(int rank) override;
  std::string NameOf(int rank) const override { return names_[static_cast<size_t>(rank)]; }

  bool IsApart() const { return apart_; }
  // Returns when each other rank of this machine has finished, or ended. Throws kPeerLost for one
  // that does neither within the time-out.
  void AwaitOthers();

 private:
  struct Silence;
  void LookAt(int rank, Silence* silence);
  RankSlot& SlotOf(int rank) const;  // of this machine

  const NodeBlock& block_;
  const NodeMap& map_;
  Waiter& waiter_;
  MpiPost* post_;
  const std::vector<std::string>& names_;
  std::chrono::milliseconds peer_timeout_;
  std::function<void()> meet_;
  std::list<SharedMemory> blocks_;
  bool apart_ = false;
};

}  // namespace trainer
