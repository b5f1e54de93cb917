#pragma once
// What strategies have in common whose ranks do not wait for each other.

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "rank_numbers.h"
#include "shared_lock.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

// All steps of a run, ranks times max_iter, are there to be taken: who is faster makes more of
// them, so that a slow rank or a dead one holds nobody up. The iteration of a step is its number
// divided by that of the ranks.
//
// When rank 0 asks for it, and when its steps are over, each rank lays down what it has learned; a
// rank that does not in a minute is left out.
class ApartStrategy : public Strategy {
 public:
  explicit ApartStrategy(const SolverSpec& spec);

  bool StepsTogether() const final { return false; }
  bool SumsGradients(int) const final { return false; }
  bool GoesApart() const final { return true; }

  void Prepare(const StrategySeat& seat) final;
  void RestoreRank(const std::string& state) final;
  void Start(int updates) final;
  void AfterStep(int updates) final;
  int NextIteration(int iter) final;
  RankWishes Agree(const RankWishes& own) final;
  void End(bool stopped) final;
  std::vector<std::string> RankStates() final;
  size_t StateBytes() const final;
  std::string Describe() const final;

 protected:
  // Of all ranks, for whom memory starts as zeros.
  struct alignas(64) Tally {
    std::atomic<uint32_t> delivered;  // the last request that it has answered
    std::atomic<uint32_t> done;       // makes no more steps
    std::atomic<int64_t> steps;
    std::atomic<int64_t> exchanges, bytes;   // that it has sent
    std::atomic<int64_t> staleness, oldest;  // summed over its exchanges; the most
    std::atomic<int64_t> dropped;            // gradients
    double weight;                           // as laid down; of gossip
  };

  // Takes what it shares with the other ranks, all of which have equal weights and rule states;
  // what rank 0 writes there is seen by all from their first step on.
  virtual void Share() = 0;
  // Behind each step, with the number of those that this rank has made.
  virtual void Exchange(int64_t steps) = 0;
  // Whether a rank has something of its own to lay down, and what goes with its numbers.
  virtual bool LaysDown() const { return true; }
  virtual double OwnWeight() const { return 1; }
  virtual void TakeWeight(double) {}
  // Adds to a copy of what a rank has laid down what it has not received yet, and returns what goes
  // with it then.
  virtual double Settle(int rank, std::span<float> /*weights*/) { return tally(rank).weight; }

  const StrategySeat& seat() const { return *seat_; }
  PeerMemory& peers() const { return *seat_->peers; }
  int rank() const { return replica_.rank; }
  int ranks() const { return replica_.count; }
  // Ranks that make steps, the first ones.
  int workers() const { return Workers(replica_.count); }
  const RankNumbers& numbers() const { return *numbers_; }
  Tally& tally(int rank) const { return tallies_[rank]; }
  // Steps that all ranks have begun.
  int64_t taken() const;
  // Whether a rank still makes steps.
  bool IsAtWork(int rank) const { return tally(rank).done == 0 && !gone_[Index(rank)]; }
  // Whether any rank still makes steps.
  bool IsAnyAtWork() const;
  bool IsGone(int rank) const { return gone_[Index(rank)]; }
  bool Stops() const;  // all shall
  void StopAll();
  // Now and then: who has ended without a word is gone.
  void LookForDead();
  // An array that all ranks see.
  std::span<float> ShareFloats(size_t count) const;
  // Locks that all ranks see.
  SharedLock* ShareLocks(size_t count) const;
  void NoteExchange(int64_t bytes, int64_t staleness);

  // On rank 0: all ranks lay down their numbers now.
  void Collect();
  // What a rank has laid down: weights, then the rule's state. Empty where it has not, or is gone.
  std::span<const float> LaidDown(int rank) const;
  // Weights of this rank's own in a consensus, which are put back behind it.
  void Swap(std::span<const float> weights);
  bool IsSwapped() const { return swapped_; }
  void LeaveConsensus() override;

 private:
  struct Board;

  static size_t Index(int i) { return static_cast<size_t>(i); }
  std::span<float> Place(int rank) const;
  void LayDown();
  int LastDue(int iter, int next) const;
  template <class Ready>
  void AwaitRank(int rank, const Ready& ready);

  const SolverSpec& spec_;
  const StrategySeat* seat_ = nullptr;
  Replica replica_;
  std::optional<RankNumbers> numbers_;
  Board* board_ = nullptr;
  Tally* tallies_ = nullptr;
  std::span<float> places_;
  std::vector<float> own_;  // weights, in a consensus
  std::vector<bool> gone_;
  int64_t looked_ = 0;  // for dead ranks, when
  bool swapped_ = false;
};

}  // namespace trainer
