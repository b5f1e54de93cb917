#pragma once
// What carries sums from machine to machine.

#include <span>
#include <string>

namespace trainer {

// Lane l joins the l-th rank of each machine. All calls are made by one thread.
class NodeLink {
 public:
  virtual ~NodeLink() = default;
  virtual int nodes() const = 0;
  // How many ranks of each machine have partners on every other one.
  virtual int lanes() const = 0;
  // Replaces each number by its sum over the ranks of this lane, in the order of the machines. The
  // same bits on each of them. Throws EndedByPeer.
  virtual void Sum(int lane, std::span<float> values) = 0;
  // The same for gradients, a part of `block`, whose numbers may travel in fewer bits. `values`
  // begin at a multiple of 16 numbers of the block.
  virtual void SumGradients(int lane, std::span<float> values, std::span<const float> block) = 0;
  // Whether SumGradients rounds.
  virtual bool rounds() const = 0;
};

}  // namespace trainer
