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
  // How many ranks of each node have a counterpart on every other node.
  virtual int rails() const = 0;
  // Replaces each number by its sum over the ranks of this rail, a tree in their order
  // (tree_sum.h), with the same bits on each of them. Throws PeerFailed.
  virtual void AllReduce(int rail, std::span<float> values) = 0;
  // The same for gradients, a range of `block`, which may be compressed. `values` begin at a
  // multiple of 16 numbers of the block.
  virtual void AllReduceGradients(int rail, std::span<float> values,
                                  std::span<const float> block) = 0;
  // Whether AllReduceGradients compresses.
  virtual bool compresses() const = 0;
};

}  // namespace trainer
