#pragma once
// All-reduce between nodes.

#include <span>
#include <string>

namespace trainer {

// Rail r connects the r-th rank of each node. One thread makes all calls.
class NodeLink {
 public:
  virtual ~NodeLink() = default;
  virtual int nodes() const = 0;
  // Returns how many ranks of each node have a counterpart on every other node.
  virtual int rails() const = 0;
  // Replaces each number by its sum over the ranks of this rail, a tree in their order
  // (tree_sum.h), with the same bits on each of them. Throws PeerFailed.
  virtual void AllReduce(int rail, std::span<float> values) = 0;
  // Replaces gradients by their sums over the ranks of this rail; they may be compressed on the
  // way. `values` are a range of `block` and begin at a multiple of 16 numbers in it. Throws
  // PeerFailed.
  virtual void AllReduceGradients(int rail, std::span<float> values,
                                  std::span<const float> block) = 0;
  // Returns whether AllReduceGradients compresses.
  virtual bool compresses() const = 0;
};

}  // namespace trainer
