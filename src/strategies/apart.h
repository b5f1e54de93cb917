#pragma once
// What strategies have in common whose ranks do not wait for each other.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rank_numbers.h"
#include "run_board.h"
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
  void Part() final;
  std::vector<std::string> RankStates() final;
  size_t StateBytes() const final;
  std::string Describe() const final;

 protected:
  // Takes what it shares with the other ranks, all of which have equal weights and rule states;
  // what is written there is seen by all from their first step on.
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
  SharedWindow& peers() const { return *seat_->peers; }
  int rank() const { return replica_.rank; }
  int ranks() const { return replica_.size; }
  // Ranks that make steps, the first ones.
  int workers() const { return Workers(replica_.size); }
  const RankNumbers& numbers() const { return *numbers_; }
  RunBoard& board() const { return *board_; }
  Tally& tally(int rank) const { return board_->tally(rank); }
  // Whether a rank still makes steps.
  bool IsAtWork(int rank) const { return tally(rank).done == 0 && !gone_[Index(rank)]; }
  // Whether any rank still makes steps.
  bool IsAnyAtWork() const;
  bool IsGone(int rank) const { return gone_[Index(rank)]; }
  // In a loop that waits for other ranks: now and then looks what they have noted, and who has
  // ended without a word and is gone. Throws EndedByPeer.
  void LookAround();
  // An array that the ranks of this machine see.
  std::span<float> ShareFloats(size_t count) const;
  // Locks that the ranks of this machine see.
  SharedLock* ShareLocks(size_t count) const;
  void NoteExchange(int64_t bytes, int64_t staleness);

  // On rank 0: all ranks lay down their numbers now.
  void Collect();
  // What a rank has laid down: weights, then the rule's state. Empty where it has not, or is gone.
  std::span<const float> LaidDown(int rank) const;
  // Weights of this rank's own in a consensus, which are put back behind it.
  void Swap(std::span<const float> weights);
  void LeaveConsensus() override;

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }
  std::span<float> Place(int rank) const;
  void LayDown();
  void SendNumbers();
  void LookForDead();
  int LastDue(int iter, int next) const;
  template <class Ready>
  void AwaitRank(int rank, const Ready& ready);

  const SolverSpec& spec_;
  const StrategySeat* seat_ = nullptr;
  Rank replica_;
  std::optional<RankNumbers> numbers_;
  std::unique_ptr<RunBoard> board_;
  std::span<float> places_;  // by rank, at the machine of rank 0
  int kind_ = 0;             // of the message that brings numbers there
  std::vector<float> own_;   // weights, in a consensus
  std::vector<bool> gone_;
  int64_t looked_ = 0;  // for dead ranks, when
  bool swapped_ = false;
};

}  // namespace trainer
