#pragma once
// What ranks that do not wait for each other must know of the run: how many steps are taken, who is
// at work, what any of them asks for.

#include <atomic>
#include <cstdint>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// What one rank has done; for whom memory starts as zeros.
struct alignas(64) Tally {
  std::atomic<int64_t> delivered;  // the last request for its numbers that it has answered
  std::atomic<int64_t> done;       // makes no more steps
  std::atomic<int64_t> steps;
  std::atomic<int64_t> exchanges, bytes;   // that it has sent
  std::atomic<int64_t> staleness, oldest;  // summed over its exchanges; the most
  std::atomic<int64_t> dropped;            // gradients
  std::atomic<double> weight;              // as laid down; of gossip
};

// It lies in the memory of the machine of rank 0. Ranks of other machines have copies, in which
// their own tally is theirs: they bring both up to date whenever they take a step, and where they
// wait for something to change.
class RunBoard {
 public:
  // All ranks make one at the same point.
  RunBoard(SharedWindow& peers, const Rank& replica);

  Tally& tally(int rank) const { return tallies_[rank]; }
  // Steps that all ranks have begun.
  int64_t taken() const { return words_->taken.load(std::memory_order_relaxed); }
  void SetTaken(int64_t steps) { words_->taken = steps; }  // of rank 0
  // The number of the next one, which this rank makes.
  int64_t TakeStep();

  bool Stops() const { return words_->stop != 0; }
  void StopAll();
  void WishSnapshot();
  // Of rank 0: whether any rank wished one since the last call.
  bool TakeSnapshotWish() { return words_->snapshot.exchange(0) != 0; }
  // Of rank 0: all ranks shall lay down their numbers. Returns the number of this request, which is
  // `requests` from then on.
  int64_t RequestNumbers() { return ++words_->requests; }
  int64_t requests() const { return words_->requests; }
  // Of rank 0: nobody is waited for any more.
  void SetOver() { words_->over = 1; }
  bool IsOver() const { return words_->over != 0; }

  // Of rank 0: it has written all that it was to write. Known on its machine.
  void SetParted() { words_->parted = 1; }
  bool IsParted() const { return words_->parted != 0; }

  // What this rank has noted becomes known to all, and what they have noted to it.
  void Update();
  // The same, where the last time was some milliseconds ago.
  void UpdateNowAndThen();

 private:
  struct alignas(64) Words {
    std::atomic<int64_t> taken;
    alignas(64) std::atomic<int64_t> stop, snapshot, requests, over, parted;
  };

  bool Answer(int from, std::span<const std::byte> request, Rpc::Bytes* reply) const;
  int64_t Exchange(bool takes_step, bool wishes_snapshot);

  SharedWindow& peers_;
  Rank replica_;
  bool home_;  // this is the machine of rank 0
  Words* words_ = nullptr;
  Tally* tallies_ = nullptr;
  int kind_ = 0;         // of the question
  int64_t updated_ = 0;  // when
};

}  // namespace trainer
