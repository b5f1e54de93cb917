#pragma once
// All-reduce over the ranks of a node, and over all nodes if there are several.

#include <span>

#include "mpi/inter_node_all_reduce.h"
#include "node/control_block.h"
#include "node/gradient_memory.h"

namespace trainer {

// All ranks start the same all-reduces in the same order. The calling thread does the additions. It
// never waits here for ranks of its node, so it can do other work meanwhile.
class NodeAllReduce {
 public:
  // `link` is null if the node has all ranks. The arguments must outlive the object.
  NodeAllReduce(const ControlBlock& block, int local, GradientMemory& gradients,
                InterNodeAllReduce* link);

  // Starts an all-reduce in place. The previous one must be complete.
  void Start(std::span<float> values);
  // Continues until it would have to wait for another rank of the node; it does wait for other
  // nodes. Returns whether the all-reduce is complete.
  bool Advance();

 private:
  // kEagerSent: this rank has filled its eager buffer. kResult: the sum of all nodes will be in the
  // result buffer. kPosted: this rank's values may be read and written by the others. kReduced:
  // this rank's part is reduced. The last four wait for the other ranks of the node.
  enum class State { kIdle, kNextChunk, kEagerSent, kResult, kPosted, kReduced };

  void PublishPhase();
  bool AllArrived() const;
  bool Step();
  void BeginChunk();
  void ReduceEager();
  void ReduceChunk();

  const ControlBlock& block_;
  int local_;
  GradientMemory& gradients_;
  InterNodeAllReduce* link_;
  std::vector<const float*> eager_;
  State state_ = State::kIdle;
  std::span<float> values_, chunk_;
  size_t done_ = 0;  // numbers of values_ that were begun
  int turn_ = 0;
};

}  // namespace trainer
