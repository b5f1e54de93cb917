#include "node/memfd_window.h"

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

// The first rank of the node creates the segment and announces its descriptor; the others map it
// between two barriers.
std::byte* MemfdWindow::Allocate(size_t bytes) {
  RankStatus& first = block_.status(0);
  SharedSegment own;
  if (topology_.local_rank == 0) {
    own = SharedSegment(bytes);
    first.memory_fd = own.fd();
  }
  meet_();
  if (topology_.local_rank != 0)
    own = SharedSegment(first.process.load(), first.memory_fd.load(), bytes);
  meet_();
  own.CloseDescriptor();
  blocks_.push_back(std::move(own));
  return reinterpret_cast<std::byte*>(blocks_.back().data());
}

int MemfdWindow::NodeOf(int rank) const {
  const auto has = [&](const std::vector<int>& ranks) {
    return std::ranges::count(ranks, rank) > 0;
  };
  return static_cast<int>(std::ranges::find_if(topology_.ranks_of_node, has) -
                          topology_.ranks_of_node.begin());
}

RankStatus& MemfdWindow::StatusOf(int rank) const {
  return block_.status(static_cast<int>(std::ranges::find(topology_.node_ranks(), rank) -
                                        topology_.node_ranks().begin()));
}

// Marks this rank as one whose death the others survive. Rank 0 is never marked: it tests and
// saves, so the run is lost without it. No rank continues before all are marked, because one may
// die before it runs again.
void MemfdWindow::EnterAsync(bool needed) {
  if (topology_.rank.rank != 0 && !needed) {
    block_.status(topology_.local_rank).is_async = 1;
  }
  meet_();
  is_async_ = true;
}

// Returns false for a rank that has finished, even if its process has ended.
bool MemfdWindow::IsDead(int rank) {
  if (!IsSameNode(rank)) return false;
  const RankStatus& status = StatusOf(rank);
  return status.state != RankState::kFinished && ProcessHasEnded(status.process.load());
}

// The last visible progress of a rank for which this one waits, and when it was seen (MonotonicNs).
struct MemfdWindow::Silence {
  uint32_t progress = 0;
  int64_t since = 0, looked = 0;
};

// Checks a rank of this node while it waits. A rank of another node is checked by RPC and the
// watchdog.
void MemfdWindow::WaitFor(int rank, const std::function<bool()>& ready) {
  if (!IsSameNode(rank)) {
    if (ready()) return;
    const MpiRpc::Waiting waiting(*rpc_, rank);
    return waiter_.Wait(ready);
  }
  Silence silence;
  waiter_.Wait([&] {
    if (ready()) return true;
    ThrowIfLost(rank, &silence);
    return false;
  });
}

void MemfdWindow::ThrowIfLost(int rank, Silence* silence) {
  constexpr int64_t kInterval = 100'000'000, kStopped = 1'000'000'000;  // nanoseconds
  const int64_t now = MonotonicNs(), passed = now - silence->looked;
  if (passed < kInterval) return;
  const RankStatus& status = StatusOf(rank);
  // A rank that waits itself is delayed by another one. After a pause of kStopped, this process was
  // suspended, so that silence does not count.
  const bool moves = status.progress != silence->progress || status.waiting_since != 0 ||
                     status.remote_wait_since != 0;
  if (moves || passed > kStopped) silence->since = now;
  silence->looked = now;
  silence->progress = status.progress;
  const std::string last = Join("; its last iteration was ", status.iterations.load());
  if (IsDead(rank)) {
    throw Error(ErrorCode::kPeerLost,
                Join(NameOf(rank), " has ended without an error message", last,
                     ". Resume from the newest snapshot (--resume=auto)"));
  }
  if (now - silence->since < std::chrono::nanoseconds(peer_timeout_).count()) return;
  throw Error(ErrorCode::kPeerLost,
              Join(NameOf(rank), " has been silent for ", peer_timeout_.count() / 1000, " s", last,
                   ". The run stops (--peer_timeout)"));
}

// Counts as progress of this rank, and rings the doorbell of `rank`.
void MemfdWindow::Notify(int rank) {
  block_.status(topology_.local_rank).progress.fetch_add(1, std::memory_order_relaxed);
  // With RPC, two threads of a rank sleep on one doorbell, so `sleeping` does not tell whether one
  // of them sleeps.
  const RankStatus& status = StatusOf(rank);
  if (rpc_ != nullptr || status.sleeping.load() != 0) {
    block_.Notify(static_cast<int>(&status - &block_.status(0)));
  }
}

void MemfdWindow::AwaitOthers() {
  constexpr std::chrono::milliseconds kPause{2};
  const int own = topology_.rank.rank;
  for (const int rank : topology_.node_ranks()) {
    const RankStatus& status = StatusOf(rank);
    std::chrono::milliseconds waited{0};
    uint32_t progress = status.progress;
    while (rank != own && status.state != RankState::kFinished && !IsDead(rank)) {
      ThrowIfFailed();
      std::this_thread::sleep_for(kPause);
      waited = progress == status.progress ? waited + kPause : std::chrono::milliseconds(0);
      progress = status.progress;
      if (waited < peer_timeout_) continue;
      throw Error(ErrorCode::kPeerLost,
                  Join("the training is finished and saved, but ", NameOf(rank),
                       " has been silent since. The run stops (--peer_timeout)"));
    }
  }
}

}  // namespace trainer
