#pragma once
// The base class of asynchronous strategies, whose ranks do not wait for each other.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator.h"
#include "flat_state.h"
#include "shared_array.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

// A run has ranks times max_iter steps, and each rank claims the next one when it is free. A faster
// rank makes more steps, so a slow or dead rank does not delay the others. The iteration of a step
// is its number divided by the number of ranks.
//
// Each rank publishes its state (weights and optimizer state) when rank 0 requests it and when it
// has made its last step. Rank 0 leaves out a rank that does not answer within a minute.
class AsyncStrategy : public Strategy {
 public:
  explicit AsyncStrategy(const SolverSpec& spec);

  bool ReducesGradients(int) const final { return false; }

  void LoadRank(const std::string& state) final;
  void Begin(int updates) final;
  int AfterStep(int iter) final;
  Requests Agree(const Requests& own) final;
  void Finish(bool stopped) final;
  void Release() final;
  std::vector<std::string> SaveRanks() final;
  size_t MaxStateBytes() const final;
  std::string Describe() const final;

 protected:
  // Allocates what the ranks share. All ranks have equal weights and optimizer states; what this
  // call writes is visible to all from their first step on.
  virtual void AllocateShared() = 0;
  // Exchanges weights or gradients with other ranks. Called after each step, with the number of
  // steps that this rank has made.
  virtual void Exchange(int64_t steps) = 0;
  // Returns whether each rank has weights of its own, which it publishes. If not, the ranks'
  // weights are copies of shared ones.
  virtual bool HasLocalState() const { return true; }
  // Return and set the weight with which a rank's state counts in a consensus. It is published and
  // saved with the state.
  virtual double mixing_weight() const { return 1; }
  virtual void set_mixing_weight(double) {}
  // Adds to a copy of a rank's published weights the messages that it has not received yet, and
  // returns the mixing weight of the result.
  virtual double AddInFlight(int rank, std::span<float> /*weights*/) { return stats(rank).weight; }

  SharedWindow& window() const { return *context().window; }
  int rank() const { return rank_.rank; }
  int ranks() const { return rank_.size; }
  // Returns the number of ranks that make steps, which are the first ones.
  int workers() const { return Workers(rank_.size); }
  const FlatState& state() const { return *state_; }
  Coordinator& coordinator() const { return *coordinator_; }
  WorkerStats& stats(int rank) const { return coordinator_->stats(rank); }
  // Returns whether a rank still makes steps.
  bool IsActive(int rank) const { return stats(rank).done == 0 && !lost_[Index(rank)]; }
  // Returns whether any rank still makes steps and rank 0 has not finished the run.
  bool AnyActive() const;
  // Returns whether DetectDeadRanks has found that a rank ended without finishing.
  bool IsLost(int rank) const { return lost_[Index(rank)]; }
  // Called in loops that wait for other ranks. Every few milliseconds it reads their counters and
  // detects dead ranks. Throws PeerFailed.
  void PollPeers();
  // Counts an exchange of this rank, which sent `bytes` bytes. `staleness` is in steps of other
  // ranks.
  void CountExchange(int64_t bytes, int64_t staleness);

  // Called on rank 0: requests all ranks' states, and returns when each rank has published its
  // state, has ended or was silent for a minute.
  void Collect();
  // Returns what a rank published for the last request or after its last step: weights, then
  // optimizer state. Empty if there is nothing or the rank is lost.
  std::span<const float> PublishedState(int rank) const;

 private:
  void Connect() final;
  static size_t Index(int i) { return static_cast<size_t>(i); }
  // Returns the block of published_ with a rank's state. Only on rank 0's node.
  std::span<float> Slot(int rank) const;
  void PublishState();
  void DetectDeadRanks();
  int NextIteration(int iter);
  int LastDue(int iter, int next) const;
  template <class Ready>
  void AwaitRank(int rank, const Ready& ready);

  const SolverSpec& spec_;
  Rank rank_;
  std::optional<FlatState> state_;
  std::unique_ptr<Coordinator> coordinator_;
  std::optional<SharedArray> published_;  // the states, with a block for each rank
  std::vector<bool> lost_;
  int64_t looked_ = 0;  // MonotonicNs when dead ranks were last looked for
};

}  // namespace trainer
