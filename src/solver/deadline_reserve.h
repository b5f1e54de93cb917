#pragma once
// Decides when a run with a deadline has to save and end.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace trainer {

// The reserve is the time that the run may still need before it has ended: the longest of the last
// iterations, the longest test, a snapshot, two seconds, and a quarter of the first three. A
// snapshot counts as long as the slowest one so far; before the first one, as long as its bytes
// would take on a slow disk.
class DeadlineReserve {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `end` is nullopt for a run without a deadline.
  DeadlineReserve(std::optional<Time> end, uint64_t snapshot_bytes);

  // Notes how long an iteration, a test or a snapshot took.
  void NoteIteration(double seconds);
  void NoteTest(double seconds);
  void NoteSnapshot(double seconds);

  // Returns whether the time left at `now` is at most the reserve. `snapshots` is the number of
  // snapshots that are still to be written. If `in_test` is true, the run is in a test, which can
  // stop at once.
  bool IsUp(Time now, int snapshots, bool in_test) const;
  // Returns the latest time at which the last snapshot may begin, or nullopt without a deadline.
  std::optional<Time> LastTry() const;
  // Returns the time that one snapshot may need, with the margin.
  std::chrono::milliseconds SnapshotReserve() const;
  // Returns "12.5 s are left; the longest iteration took 0.2 s, a test 3 s, a snapshot 1.5 s".
  std::string Describe(Time now) const;

 private:
  double SnapshotSeconds() const { return snapshot_ ? *snapshot_ : estimate_; }
  double LongestIteration() const;

  std::optional<Time> end_;
  double estimate_;
  std::optional<double> snapshot_;
  double test_ = 0;
  // Only the last iterations count: a job that was suspended for an hour has one long iteration.
  std::array<double, 64> iterations_ = {};
  size_t next_ = 0;
};

}  // namespace trainer
