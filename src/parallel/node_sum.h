#pragma once
// Sums over the ranks of one machine, and over all machines where there are several.

#include <span>

#include "node_block.h"
#include "node_link.h"
#include "shared_gradients.h"

namespace trainer {

// Every rank starts the same sums in the same order. The thread that calls is the one that adds; it
// never waits here, so that it may do other work while ranks are behind.
//
// What lies in SharedGradients is summed in place: each rank adds its share of the numbers and
// writes the sums to all ranks' memory (two stages). Small sums, and what lies elsewhere, go
// through the mailboxes, where each rank adds all of it (one stage). Numbers are added as a tree
// over the machine's ranks, then over the machines (add.h).
class NodeSum {
 public:
  // Without a `link` the machine has all ranks. All must outlive the object.
  NodeSum(const NodeBlock& block, int local, SharedGradients& gradients, NodeLink* link);

  // Begins a sum, in place. The one before must be complete.
  void Start(std::span<float> values);
  // Does all that can be done without waiting for another rank of the machine (for other machines
  // it waits). Whether the sum is complete.
  bool Advance();

 private:
  enum class Stage { kIdle, kNextPart, kMailed, kResult, kReady, kShared };

  void Post();
  bool AllPosted() const;
  bool Step();
  void BeginPart();
  void AddMail();
  void AddShare();

  const NodeBlock& block_;
  int local_;
  SharedGradients& gradients_;
  NodeLink* link_;
  std::vector<const float*> mail_;
  Stage stage_ = Stage::kIdle;
  std::span<float> values_, part_;
  size_t done_ = 0;  // of values_
  int turn_ = 0;
};

}  // namespace trainer
