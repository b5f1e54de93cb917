// All-reduce of gradients that are compressed to 16 bits.

#include <algorithm>

#include "mpi/inter_node_all_reduce.h"
#include "trainer/parallel/all_reduce_limits.h"

namespace trainer {
namespace {

// Returns the part of `values` that node `node` of `nodes` adds: whole blocks of 16, except the
// last.
template <class T>
std::span<T> Piece(std::span<T> values, size_t node, size_t nodes) {
  const size_t lines = (values.size() + kScaleBlock - 1) / kScaleBlock;
  const auto at = [&](size_t k) {
    return std::min(values.size(), lines * k / nodes * kScaleBlock);
  };
  return values.subspan(at(node), at(node + 1) - at(node));
}

}  // namespace

// Also counts the bytes that are sent. Each number is sent about twice, once as a term and once as
// a sum, except in this node's own piece.
void InterNodeAllReduce::AllReduceGradients(int rail, std::span<float> values,
                                            std::span<const float> block) {
  const std::vector<int>& ranks = rails_[static_cast<size_t>(rail)];
  const size_t others = ranks.size() - 1;
  plain_bytes_ += 2 * values.size_bytes() * others / ranks.size();
  if (!compresses()) {
    sent_bytes_ += 2 * values.size_bytes() * others / ranks.size();
    return AllReduce(rail, values);
  }
  for (size_t begin = 0; begin < values.size(); begin += kChunkFloats) {
    AllReduceCompressed(ranks, values.subspan(begin, std::min(kChunkFloats, values.size() - begin)),
                        block);
  }
}

// Reduces at most kChunkFloats compressed numbers: encodes and exchanges the pieces, adds the
// decoded ones, and distributes the encoded sums.
void InterNodeAllReduce::AllReduceCompressed(const std::vector<int>& ranks, std::span<float> values,
                                             std::span<const float> block) {
  const size_t nodes = ranks.size(), self = static_cast<size_t>(node_);
  const size_t lines = (values.size() + kScaleBlock - 1) / kScaleBlock;
  // Each part begins at an even address, because it is accessed as 16-bit numbers.
  stride_ = (CompressedBytes(type_, (lines + nodes - 1) / nodes * kScaleBlock) + 1) / 2 * 2;
  coded_.resize(std::max(coded_.size(), stride_ * nodes));
  others_.resize(std::max(others_.size(), stride_ * nodes));
  ExchangePieces(ranks, values, block);
  const std::span<float> own = Piece(values, self, nodes);
  received_.resize(std::max(received_.size(), own.size() * (nodes - 1)));
  float* next = received_.data();
  for (size_t node = 0; node < nodes; ++node) {
    if (node == self) {
      Decode(type_, SendBuffer(node, own.size()).data(), own);
    } else {
      Decode(type_, ReceiveBuffer(node, own.size()).data(), {next, own.size()});
      next += own.size();
    }
  }
  SumPieces(own);
  AllGather(ranks, values, block);
}

// Encodes all pieces of this node's numbers, also its own, sends each to the node that adds it, and
// receives the others' numbers of the own piece.
void InterNodeAllReduce::ExchangePieces(const std::vector<int>& ranks,
                                        std::span<const float> values,
                                        std::span<const float> block) {
  const size_t nodes = ranks.size(), self = static_cast<size_t>(node_);
  const size_t own = Piece(values, self, nodes).size();
  for (size_t node = 0; node < nodes; ++node) {
    if (node != self) mpi_.Receive(ReceiveBuffer(node, own), ranks[node], kPieceTag);
  }
  for (size_t node = 0; node < nodes; ++node) {
    const std::span<const float> piece = Piece(values, node, nodes);
    const std::span<std::byte> coded = SendBuffer(node, piece.size());
    Encode(type_, piece, own_rest_.Of(block, piece.data()), coded.data());
    if (node != self) Send(coded, ranks[node], kPieceTag);
  }
  WaitForMessages();
}

// Sends the rounded sum of this node's piece to all nodes and receives their sums. The own sum is
// decoded, too, so that all nodes have the same bits.
void InterNodeAllReduce::AllGather(const std::vector<int>& ranks, std::span<float> values,
                                   std::span<const float> block) {
  const size_t nodes = ranks.size(), self = static_cast<size_t>(node_);
  const std::span<const float> own = Piece(values, self, nodes);
  const std::span<std::byte> coded = SendBuffer(self, own.size());
  Encode(type_, own, sum_rest_.Of(block, own.data()), coded.data());
  for (size_t node = 0; node < nodes; ++node) {
    if (node == self) continue;
    mpi_.Receive(ReceiveBuffer(node, Piece(values, node, nodes).size()), ranks[node], kSumTag);
    Send(coded, ranks[node], kSumTag);
  }
  WaitForMessages();
  for (size_t node = 0; node < nodes; ++node) {
    const std::span<float> piece = Piece(values, node, nodes);
    Decode(type_, node == self ? coded.data() : ReceiveBuffer(node, piece.size()).data(), piece);
  }
}

// Starts sending encoded gradients and counts their bytes.
void InterNodeAllReduce::Send(std::span<const std::byte> coded, int rank, int tag) {
  mpi_.Send(coded, rank, tag);
  sent_bytes_ += coded.size();
}

// Returns the send buffer for the piece of a node, of `count` numbers.
std::span<std::byte> InterNodeAllReduce::SendBuffer(size_t node, size_t count) {
  return {coded_.data() + stride_ * node, CompressedBytes(type_, count)};
}

// Returns the receive buffer for a message of a node, of `count` numbers.
std::span<std::byte> InterNodeAllReduce::ReceiveBuffer(size_t node, size_t count) {
  return {others_.data() + stride_ * node, CompressedBytes(type_, count)};
}

void InterNodeAllReduce::ResetErrorFeedback() {
  own_rest_.Clear();
  sum_rest_.Clear();
}

}  // namespace trainer
