#include "mpi/inter_node_all_reduce.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "node/tree_sum.h"
#include "trainer/base/thread/spin.h"
#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {
namespace {

constexpr int64_t kBeatInterval = 5'000'000'000;  // nanoseconds

}  // namespace

void InterNodeAllReduce::AllReduce(int rail, std::span<float> values) {
  for (size_t begin = 0; begin < values.size(); begin += kChunkFloats) {
    AllReduceChunk(rails_[static_cast<size_t>(rail)],
                   values.subspan(begin, std::min(kChunkFloats, values.size() - begin)));
  }
}

// Reduces at most kChunkFloats numbers: sends each node its piece, adds the own piece, and sends
// the sum to all. Up to kDirectFloats numbers are sent complete, and each node adds all of them.
void InterNodeAllReduce::AllReduceChunk(const std::vector<int>& ranks, std::span<float> values) {
  const size_t nodes = ranks.size();
  const bool whole = values.size() <= kDirectFloats;
  const auto piece = [&](size_t node) {
    if (whole) return values;
    const size_t begin = values.size() * node / nodes;
    return values.subspan(begin, values.size() * (node + 1) / nodes - begin);
  };
  const auto self = static_cast<size_t>(node_);
  const std::span<float> own = piece(self);
  received_.resize(std::max(received_.size(), own.size() * (nodes - 1)));
  for (size_t node = 0, status = 0; node < nodes; ++node) {
    if (node == self) continue;
    const std::span<float> from = std::span(received_).subspan(own.size() * status++, own.size());
    mpi_.Receive(std::as_writable_bytes(from), ranks[node], kPieceTag);
    mpi_.Send(std::as_bytes(piece(node)), ranks[node], kPieceTag);
  }
  WaitForMessages();
  SumPieces(own);
  if (whole) return;
  for (size_t node = 0; node < nodes; ++node) {
    if (node == self) continue;
    mpi_.Receive(std::as_writable_bytes(piece(node)), ranks[node], kSumTag);
    mpi_.Send(std::as_bytes(own), ranks[node], kSumTag);
  }
  WaitForMessages();
}

// Replaces `own` by the sum over all nodes, added as a tree: the received pieces and, at this
// node's position, `own` itself.
void InterNodeAllReduce::SumPieces(std::span<float> own) {
  terms_.clear();
  const float* next = received_.data();
  for (int node = 0; node < nodes(); ++node) {
    terms_.push_back(node == node_ ? own.data() : next);
    if (node != node_) next += own.size();
  }
  TreeSum(terms_, own.data(), own.size());
}

// Returns when all started messages are complete. Meanwhile this rank's status says for which rank
// it waits.
//
// MPI makes progress only when it is polled, and each poll costs the core that computes meanwhile
// some microseconds. The pauses between polls therefore grow with the time waited: an all-reduce
// takes at most a sixteenth longer, and the data that arrives within the longest pause fits into
// the system's buffers.
void InterNodeAllReduce::WaitForMessages() {
  constexpr int64_t kSpin = 20'000, kLongestPause = 200'000;  // nanoseconds
  RankStatus& status = block_.status(local_);
  const int64_t begin = MonotonicNs();
  int missing = -1;
  while (!mpi_.AllDone(&missing)) {
    check_();
    const int64_t now = MonotonicNs();
    if (now - begin < kSpin) continue;
    status.remote_wait_rank = missing;
    if (status.remote_wait_since == 0) status.remote_wait_since = begin;
    if (now - heard_ > kBeatInterval / 10) {
      heard_ = now;
      if (mpi_.DrainHeartbeats(missing)) status.remote_wait_since = now;
      Beat();  // other ranks may be waiting for this one
    }
    if (may_sleep_()) {
      const int64_t pause = std::clamp((now - begin) / 16, kSpin, kLongestPause);
      std::this_thread::sleep_for(std::chrono::nanoseconds(pause));
    } else {
      std::this_thread::yield();
    }
  }
  status.remote_wait_since = 0;
}

// Returns the ranks of other nodes on this rank's rail, which may wait for it; none if it has no
// rail, because its node has more ranks than the smallest one.
std::vector<int> InterNodeAllReduce::RailRanks() const {
  std::vector<int> ranks;
  if (local_ >= rails()) return ranks;
  const std::vector<int>& rail = rails_[static_cast<size_t>(local_)];
  for (int node = 0; node < nodes(); ++node) {
    if (node != node_) ranks.push_back(rail[static_cast<size_t>(node)]);
  }
  return ranks;
}

void InterNodeAllReduce::Beat() {
  const int64_t now = MonotonicNs();
  if (now - beat_ < kBeatInterval) return;
  beat_ = now;
  uint32_t progress = 0;
  for (int local = 0; local < block_.local_size(); ++local)
    progress += block_.status(local).progress;
  if (progress == progress_) return;
  progress_ = progress;
  for (const int rank : RailRanks()) mpi_.SendHeartbeat(rank);
}

void InterNodeAllReduce::DrainHeartbeats() {
  for (const int rank : RailRanks()) static_cast<void>(mpi_.DrainHeartbeats(rank));
}

}  // namespace trainer
