#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "mpi/compression.h"
#include "mpi/mpi.h"
#include "node/control_block.h"

namespace trainer {

// All-reduce between nodes. Each node sends every other node the chunk that the other one adds (or
// everything, if that is little), adds its own chunk as a tree over the nodes, and sends the sum to
// all.
//
// Gradients may be compressed to 16 bits in both directions, with error feedback in each. A node
// also rounds the numbers that it adds itself, so the result does not depend on which node adds
// them. They are added as floats, and the sum is rounded once, for all nodes. Sending sums as
// floats would save that second rounding but take 6 bytes per number and node instead of 4; error
// feedback compensates for the rounding (double compression: H. Tang et al., "DoubleSqueeze", ICML
// 2019).
class InterNodeAllReduce {
 public:
  // partners[rail][node] is a rank of the world. This rank has number `local` on node `node`; its
  // status in `block` says for which rank it waits. `may_sleep` returns whether the cores have
  // other work; `check` throws if the run has failed. One thread makes all calls.
  InterNodeAllReduce(Mpi& mpi, const ControlBlock& block, int local,
                     std::vector<std::vector<int>> partners, int node,
                     std::function<bool()> may_sleep, std::function<void()> check)
      : mpi_(mpi),
        block_(block),
        local_(local),
        rails_(std::move(partners)),
        node_(node),
        may_sleep_(std::move(may_sleep)),
        check_(std::move(check)) {}

  int nodes() const { return static_cast<int>(rails_.front().size()); }
  // Returns how many ranks of each node have a counterpart on every other node. Rail r connects the
  // r-th rank of each node.
  int rails() const { return static_cast<int>(rails_.size()); }
  // Replaces each number by its sum over the ranks of this rail, a tree in their order
  // (tree_sum.h), with the same bits on each of them. Throws PeerFailed.
  void AllReduce(int rail, std::span<float> values);
  // Replaces gradients by their sums over the ranks of this rail; they may be compressed on the
  // way. `values` are a range of `block` and begin at a multiple of 16 numbers in it. Throws
  // PeerFailed.
  void AllReduceGradients(int rail, std::span<float> values, std::span<const float> block);
  // Returns whether AllReduceGradients compresses.
  bool compresses() const { return type_ != CompressionType::kF32; }
  // Called while no all-reduce is in progress, with the same type on all ranks.
  void SetCompression(CompressionType type) {
    type_ = type;
    sent_bytes_ = plain_bytes_ = 0;
  }
  // Called while no all-reduce is in progress: sets the rounding errors to zero.
  void ResetErrorFeedback();
  // Return the bytes of gradients that this rank has sent since SetCompression, and what they would
  // have been as floats.
  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t plain_bytes() const { return plain_bytes_; }
  // Sends heartbeats to the ranks that may wait for this one, at most every 5 s and only if a rank
  // of its node has made progress since the last ones. Called from time to time.
  void Beat();
  // Receives all heartbeats. Called before MPI is finalized, when no other message is in flight.
  void DrainHeartbeats();

 private:
  static constexpr int kPieceTag = 1, kSumTag = 2;  // tags of MPI messages

  void AllReduceChunk(const std::vector<int>& ranks, std::span<float> values);
  void AllReduceCompressed(const std::vector<int>& ranks, std::span<float> values,
                           std::span<const float> block);
  void ExchangePieces(const std::vector<int>& ranks, std::span<const float> values,
                      std::span<const float> block);
  void AllGather(const std::vector<int>& ranks, std::span<float> values,
                 std::span<const float> block);
  void Send(std::span<const std::byte> coded, int rank, int tag);
  std::span<std::byte> SendBuffer(size_t node, size_t count);
  std::span<std::byte> ReceiveBuffer(size_t node, size_t count);
  void SumPieces(std::span<float> own);
  void WaitForMessages();
  std::vector<int> RailRanks() const;

  Mpi& mpi_;
  const ControlBlock& block_;
  int local_;
  uint32_t progress_ = 0;  // of this node, when the last heartbeat was sent
  int64_t beat_ = 0;       // when that heartbeat was sent
  int64_t heard_ = 0;      // when heartbeats were last drained
  std::vector<std::vector<int>> rails_;
  int node_;
  std::function<bool()> may_sleep_;
  std::function<void()> check_;
  std::vector<float> received_;
  std::vector<const float*> terms_;
  CompressionType type_ = CompressionType::kF32;
  ErrorFeedback own_rest_, sum_rest_;      // of this node's numbers; of the sums that it adds
  std::vector<std::byte> coded_, others_;  // sent and received data, by node
  size_t stride_ = 0;                      // bytes from one node's part to the next
  std::atomic<uint64_t> sent_bytes_{0}, plain_bytes_{0};
};

}  // namespace trainer
