#pragma once
// When a run with a deadline has to save and end.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace trainer {

// Its reserve is what may still come before the run has ended: the longest of the last iterations,
// the longest test, a snapshot (as long as the slowest so far; before the first, as its bytes would
// take on a slow disk), and a margin of two seconds and a quarter of all that.
class DeadlineReserve {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `end`: nothing for a run without a limit.
  DeadlineReserve(std::optional<Time> end, uint64_t snapshot_bytes);

  // Notes how long an iteration, a test or a snapshot took.
  void NoteIteration(double seconds);
  void NoteTest(double seconds);
  void NoteSnapshot(double seconds);

  // Whether no more than the reserve is left at `now`. `snapshots`: how many are still to be
  // written; `in_test`: the run is in a test, which may be cut short at once.
  bool IsUp(Time now, int snapshots, bool in_test) const;
  // The latest time at which the last snapshot may begin; nothing without a deadline.
  std::optional<Time> LastTry() const;
  // What one snapshot may take, with the margin.
  std::chrono::milliseconds SnapshotReserve() const;
  // "12.5 s are left; the longest iteration takes 0.2 s, a test 3 s, a snapshot 1.5 s".
  std::string Describe(Time now) const;

 private:
  double SnapshotSeconds() const { return snapshot_ ? *snapshot_ : estimate_; }
  double LongestIteration() const;

  std::optional<Time> end_;
  double estimate_;
  std::optional<double> snapshot_;
  double test_ = 0;
  // Of the last ones alone: a job that was suspended for an hour has one long iteration.
  std::array<double, 64> iterations_ = {};
  size_t next_ = 0;
};

}  // namespace trainer
