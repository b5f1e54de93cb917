#pragma once
// The coordinator of an asynchronous run: the global step counter, each worker's status, and
// pending stop and snapshot requests.

#include <atomic>
#include <cstdint>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// Counters of one rank. Zero-initialised, because shared memory starts as zeros.
struct alignas(64) WorkerStats {
  std::atomic<int64_t>
      answered_request;       // the last request for its state that the rank has answered
  std::atomic<int64_t> done;  // the rank makes no more steps
  std::atomic<int64_t> steps;
  std::atomic<int64_t> exchanges, bytes;          // sent by the rank
  std::atomic<int64_t> staleness, max_staleness;  // over all exchanges, in steps: sum and maximum
  std::atomic<int64_t> gradients_dropped;         // too late to be applied
  std::atomic<double> weight;  // the mixing weight that was published with the state (gossip)
};

// Stored in shared memory on rank 0's node. Ranks of other nodes keep a copy and synchronise it
// with rank 0 before each step and while they wait; each writes only its own statistics.
class Coordinator {
 public:
  // The constructor is collective.
  Coordinator(SharedWindow& window, const Rank& rank);

  WorkerStats& stats(int rank) const { return stats_[rank]; }
  // The number of steps that all ranks together have begun.
  int64_t global_step() const { return words_->global_step.load(std::memory_order_relaxed); }
  // Called by rank 0: sets the number of steps that count as begun.
  void SetGlobalStep(int64_t steps) { words_->global_step = steps; }
  // Claims the next global step for this rank and returns its number, counted from 0. Atomic.
  int64_t NextStep();

  // Returns whether any rank has requested a stop.
  bool Stops() const { return words_->stop != 0; }
  // Requests that all ranks stop. Later calls change nothing.
  void RequestStop();
  // Requests a snapshot from rank 0.
  void RequestSnapshot();
  // Called by rank 0: returns whether any rank has requested a snapshot since the last call.
  bool TakeSnapshotRequest() { return words_->snapshot.exchange(0) != 0; }
  // Called by rank 0: requests that all ranks publish their states. Returns the number of this
  // request, which requests() returns from then on.
  int64_t RequestStates() { return ++words_->requests; }
  // Returns the number of the last request for states, 0 before the first.
  int64_t requests() const { return words_->requests; }
  // Called by rank 0 at the end of the run. Workers may exit; no rank waits for another from now
  // on.
  void SetFinished() { words_->finished = 1; }
  bool IsFinished() const { return words_->finished != 0; }

  // Called by rank 0 when it has written its files. Visible to the ranks of its node.
  void SetReleased() { words_->released = 1; }
  bool IsReleased() const { return words_->released != 0; }

  // Publishes this rank's counters and reads the counters of the others.
  void Update();
  // Calls Update if the last call was some milliseconds ago.
  void UpdateIfStale();

 private:
  struct alignas(64) Words {
    std::atomic<int64_t> global_step;
    alignas(64) std::atomic<int64_t> stop, snapshot, requests, finished, released;
  };

  bool Answer(int from, std::span<const std::byte> request, Rpc::Bytes* reply) const;
  // Sends this rank's counters and requests to rank 0, and stores the counters of all ranks from
  // the reply. Returns the claimed step if `claims_step`, else 0. Only on other nodes than rank
  // 0's.
  int64_t Exchange(bool claims_step, bool wants_snapshot);

  SharedWindow& window_;
  Rank rank_;
  bool is_home_;  // this rank is on the node of rank 0
  Words* words_ = nullptr;
  WorkerStats* stats_ = nullptr;
  int method_ = 0;       // the RPC method of Exchange
  int64_t updated_ = 0;  // when Update was last called
};

}  // namespace trainer
