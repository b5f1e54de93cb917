#include "node/node_all_reduce.h"

#include <algorithm>
#include <cstring>

#include "node/tree_sum.h"
#include "trainer/base/thread/thread_team.h"
#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {
namespace {

constexpr size_t kLine = 16;  // floats in a cache line; no two ranks write to the same line

// Returns the range of chunk `i` if `count` numbers are divided into `chunks` chunks of whole cache
// lines.
std::pair<size_t, size_t> ChunkRange(size_t count, int i, int chunks) {
  const size_t lines = (count + kLine - 1) / kLine;
  const auto at = [&](int k) {
    return std::min(count, lines * static_cast<size_t>(k) / static_cast<size_t>(chunks) * kLine);
  };
  return {at(i), at(i + 1)};
}

// Replaces numbers [begin, end) of all ranks' chunks by their sums. Adds on the caller's thread
// team, with so few threads that each is worth its start.
void AddEverywhere(std::span<float* const> chunks, size_t begin, size_t end, int most_threads) {
  constexpr size_t kPerThread = 1 << 16;
  const size_t count = end - begin;
  const int threads = static_cast<int>(
      std::clamp<size_t>(count / kPerThread, 1, static_cast<size_t>(most_threads)));
  RunParts(threads, [&](int thread) {
    const auto [from, to] = ChunkRange(count, thread, threads);
    TreeSumInPlace(chunks, begin + from, begin + to);
  });
}

}  // namespace

NodeAllReduce::NodeAllReduce(const ControlBlock& block, int local, GradientMemory& gradients,
                             InterNodeAllReduce* link)
    : block_(block),
      local_(local),
      gradients_(gradients),
      link_(link),
      eager_(static_cast<size_t>(block.local_size())) {}

void NodeAllReduce::Start(std::span<float> values) {
  values_ = values;
  done_ = 0;
  state_ = State::kNextChunk;
}

bool NodeAllReduce::Advance() {
  while (state_ != State::kIdle) {
    if (!Step()) return false;
  }
  return true;
}

// Does one step if the other ranks of the node allow it. Returns false if it must wait for them.
bool NodeAllReduce::Step() {
  if (state_ == State::kNextChunk) {
    BeginChunk();
    return true;
  }
  if (!AllArrived()) return false;
  switch (state_) {
    case State::kEagerSent:
      ReduceEager();
      break;
    case State::kResult:
      std::memcpy(chunk_.data(), block_.eager_buffer(block_.local_size(), turn_),
                  chunk_.size_bytes());
      state_ = State::kNextChunk;
      break;
    case State::kPosted:
      ReduceChunk();
      PublishPhase();
      state_ = State::kReduced;
      break;
    default:
      state_ = State::kNextChunk;
  }
  return true;
}

// Begins the next part of the values: all the rest in place if it is large and all ranks map it,
// else what fits into an eager buffer.
void NodeAllReduce::BeginChunk() {
  if (done_ == values_.size()) {
    state_ = State::kIdle;
    return;
  }
  const std::span<float> rest = values_.subspan(done_);
  // With compression, small gradients take this path, too: all are rounded, so the result does not
  // depend on bucket sizes.
  const bool large = rest.size() > kEagerFloats || (link_ != nullptr && link_->compresses());
  if (large && !gradients_.PeerViews(rest).empty()) {
    chunk_ = rest;
    state_ = State::kPosted;
  } else {
    // A rank reuses an eager buffer when all ranks have sent the chunk after it, through the other
    // buffer, and so have read this one.
    chunk_ = rest.first(std::min(rest.size(), ControlBlock::kEagerBuffer));
    turn_ = 1 - turn_;
    std::memcpy(block_.eager_buffer(local_, turn_), chunk_.data(), chunk_.size_bytes());
    state_ = State::kEagerSent;
  }
  done_ += chunk_.size();
  PublishPhase();
}

// Adds all ranks' eager buffers into the values. With several nodes the first rank of each node
// does it for its node, in place of the others, which then copy the result.
void NodeAllReduce::ReduceEager() {
  for (int local = 0; local < block_.local_size(); ++local) {
    eager_[static_cast<size_t>(local)] = block_.eager_buffer(local, turn_);
  }
  if (link_ == nullptr) {
    TreeSum(eager_, chunk_.data(), chunk_.size());
    state_ = State::kNextChunk;
    return;
  }
  if (local_ == 0) {
    float* const result = block_.eager_buffer(block_.local_size(), turn_);
    TreeSum(eager_, result, chunk_.size());
    link_->AllReduce(0, {result, chunk_.size()});
  }
  PublishPhase();
  state_ = State::kResult;
}

// Reduces this rank's part of a chunk in the memory of all ranks of the node. With several nodes,
// it also reduces it with the ranks on its rail, which have the same part, and only as many ranks
// work as there are rails.
void NodeAllReduce::ReduceChunk() {
  const std::span<float* const> everywhere = gradients_.PeerViews(chunk_);
  const int chunks = link_ == nullptr ? block_.local_size() : link_->rails();
  if (local_ >= chunks) return;
  const auto [begin, end] = ChunkRange(chunk_.size(), local_, chunks);
  AddEverywhere(everywhere, begin, end, link_ == nullptr ? TeamSize() : 1);
  if (link_ == nullptr) return;
  const std::span<float> own = chunk_.subspan(begin, end - begin);
  link_->AllReduceGradients(local_, own, gradients_.RegionOf(chunk_));
  for (float* const other : everywhere) {
    if (other != chunk_.data()) std::memcpy(other + begin, own.data(), own.size_bytes());
  }
}

// Says that this rank has completed a phase, and wakes the ranks of the node that sleep.
void NodeAllReduce::PublishPhase() {
  block_.status(local_).phase.fetch_add(1);
  for (int local = 0; local < block_.local_size(); ++local) {
    if (local != local_ && block_.status(local).sleeping.load() != 0) block_.Notify(local);
  }
}

// Returns whether all ranks of the node have completed as many phases as this one.
bool NodeAllReduce::AllArrived() const {
  const uint32_t own = block_.status(local_).phase.load(std::memory_order_relaxed);
  for (int local = 0; local < block_.local_size(); ++local) {
    const uint32_t other = block_.status(local).phase.load();
    if (static_cast<int32_t>(other - own) < 0) return false;
  }
  return true;
}

}  // namespace trainer
