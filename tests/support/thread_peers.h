#pragma once
// The memory that replicas share which are threads of one process.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/peer_memory.h"
#include "trainer/base/text.h"

namespace trainer {

// Of all threads of a run.
class SharedBlocks {
 public:
  explicit SharedBlocks(int ranks) : barrier_(ranks), ended_(static_cast<size_t>(ranks)) {}

  // Has the threads believe that the process of a rank has ended.
  void End(int rank) { ended_[static_cast<size_t>(rank)] = true; }
  // How many blocks were allocated.
  size_t count() const { return blocks_.size(); }

 private:
  friend class ThreadPeers;
  std::barrier<> barrier_;
  std::vector<std::unique_ptr<std::byte[], void (*)(void*)>> blocks_;
  std::vector<std::atomic<bool>> ended_;
};

class ThreadPeers final : public PeerMemory {
 public:
  ThreadPeers(SharedBlocks& blocks, int rank) : blocks_(blocks), rank_(rank) {}

  std::byte* Allocate(size_t bytes) override {
    if (rank_ == 0) {
      const size_t lines = (bytes + 63) / 64 * 64;
      auto* const block = static_cast<std::byte*>(std::aligned_alloc(64, lines));
      std::fill_n(block, lines, std::byte{0});
      blocks_.blocks_.emplace_back(block, std::free);
    }
    blocks_.barrier_.arrive_and_wait();
    std::byte* const block = blocks_.blocks_.back().get();
    blocks_.barrier_.arrive_and_wait();
    return block;
  }
  void GoApart() override { blocks_.barrier_.arrive_and_wait(); }
  bool HasEnded(int rank) override { return blocks_.ended_[static_cast<size_t>(rank)]; }
  void ThrowIfFailed() override {}
  void Await(int rank, const std::function<bool()>& ready) override {
    while (!ready()) {
      if (HasEnded(rank)) throw Error(ErrorCode::kPeerLost, NameOf(rank) + " has ended");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  void Ring(int) override {}
  std::string NameOf(int rank) const override { return Join("rank ", rank, " (a thread)"); }

 private:
  SharedBlocks& blocks_;
  int rank_;
};

}  // namespace trainer
