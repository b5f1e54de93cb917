#include "node_memory.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/process/process_life.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"
#include "trainer/parallel/failure.h"

namespace trainer {

std::byte* NodeMemory::Allocate(size_t bytes) {
  RankSlot& first = block_.slot(0);
  SharedMemory own;
  if (map_.local == 0) {
    own = SharedMemory(bytes);
    first.memory_fd = own.fd();
  }
  meet_();
  if (map_.local != 0) own = SharedMemory(first.process.load(), first.memory_fd.load(), bytes);
  meet_();
  own.CloseDescriptor();
  blocks_.push_back(std::move(own));
  return reinterpret_cast<std::byte*>(blocks_.back().data());
}

int NodeMemory::MachineOf(int rank) const {
  const auto has = [&](const std::vector<int>& ranks) {
    return std::ranges::count(ranks, rank) > 0;
  };
  return static_cast<int>(std::ranges::find_if(map_.ranks, has) - map_.ranks.begin());
}

RankSlot& NodeMemory::SlotOf(int rank) const {
  return block_.slot(static_cast<int>(std::ranges::find(map_.own(), rank) - map_.own().begin()));
}

// Rank 0 tests and saves: without it nothing would be left of the run. When any rank goes on, all
// are marked: one may die before it has a core again.
void NodeMemory::GoApart(bool needed) {
  if (map_.own()[static_cast<size_t>(map_.local)] != 0 && !needed) {
    block_.slot(map_.local).apart = 1;
  }
  meet_();
  apart_ = true;
}

bool NodeMemory::HasEnded(int rank) {
  if (!IsNear(rank)) return false;
  const RankSlot& slot = SlotOf(rank);
  return slot.state != RankState::kFinished && ProcessHasEnded(slot.process.load());
}

void NodeMemory::ThrowIfFailed() {
  if (block_.failure().code != 0) throw EndedByPeer(block_.failure().code);
}

// Since when a rank has done nothing that this one could see.
struct NodeMemory::Silence {
  uint32_t progress = 0;
  int64_t since = 0, looked = 0;
};

void NodeMemory::Await(int rank, const std::function<bool()>& ready) {
  if (!IsNear(rank)) {
    if (ready()) return;
    const MpiPost::Waiting waiting(*post_, rank);
    return waiter_.Until(ready);
  }
  Silence silence;
  waiter_.Until([&] {
    if (ready()) return true;
    LookAt(rank, &silence);
    return false;
  });
}

void NodeMemory::LookAt(int rank, Silence* silence) {
  constexpr int64_t kInterval = 100'000'000, kStopped = 1'000'000'000;  // nanoseconds
  const int64_t now = MonotonicNs(), passed = now - silence->looked;
  if (passed < kInterval) return;
  const RankSlot& slot = SlotOf(rank);
  // One that waits itself is kept by another; and after a pause this process was stopped.
  const bool moves =
      slot.progress != silence->progress || slot.waiting_since != 0 || slot.link_since != 0;
  if (moves || passed > kStopped) silence->since = now;
  silence->looked = now;
  silence->progress = slot.progress;
  const std::string last = Join("; its last iteration was ", slot.iterations.load());
  if (HasEnded(rank)) {
    throw Error(ErrorCode::kPeerLost,
                Join(NameOf(rank), " has ended without an error message", last,
                     ". Resume from the newest snapshot (--resume=auto)"));
  }
  if (now - silence->since < std::chrono::nanoseconds(peer_timeout_).count()) return;
  throw Error(ErrorCode::kPeerLost,
              Join(NameOf(rank), " has been silent for ", peer_timeout_.count() / 1000, " s", last,
                   ". The run stops (--peer_timeout)"));
}

void NodeMemory::Ring(int rank) {
  block_.slot(map_.local).progress.fetch_add(1, std::memory_order_relaxed);
  // Where there is a post, two threads of a rank sleep on one bell.
  const RankSlot& slot = SlotOf(rank);
  if (post_ != nullptr || slot.sleeping.load() != 0) {
    block_.Ring(static_cast<int>(&slot - &block_.slot(0)));
  }
}

void NodeMemory::AwaitOthers() {
  constexpr std::chrono::milliseconds kPause{2};
  const int own = map_.own()[static_cast<size_t>(map_.local)];
  for (const int rank : map_.own()) {
    const RankSlot& slot = SlotOf(rank);
    std::chrono::milliseconds waited{0};
    uint32_t progress = slot.progress;
    while (rank != own && slot.state != RankState::kFinished && !HasEnded(rank)) {
      ThrowIfFailed();
      std::this_thread::sleep_for(kPause);
      waited = progress == slot.progress ? waited + kPause : std::chrono::milliseconds(0);
      progress = slot.progress;
      if (waited < peer_timeout_) continue;
      throw Error(ErrorCode::kPeerLost,
                  Join("the training is finished and saved, but ", NameOf(rank),
                       " has been silent since. The run stops (--peer_timeout)"));
    }
  }
}

}  // namespace trainer
