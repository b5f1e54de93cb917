#pragma once
// How the ranks of a run spend their time.

#include <span>

#include "trainer/monitor/observer.h"
#include "trainer/net/net.h"

namespace trainer {

// How one rank spent some time.
struct RankTime {
  double seconds = 0, exchange = 0,
         data = 0;    // all; in calls of the communicator; waiting for batches
  double hidden = 0;  // in which all-reduces overlapped computing
};

// Computes the means over the ranks and finds the straggler: the rank that spent the least time in
// the communicator, if the others spent more than a tenth of their time more in it. Does not set
// its name.
RanksReport Summarize(std::span<const RankTime> ranks, int* straggler);

// Measures from Restart or the last report on. Used by the training thread.
class RankTimes {
 public:
  // For a communicator that has stats(). `net`: the training net. The arguments must outlive the
  // object.
  RankTimes(Communicator& group, const Net& net) : group_(group), net_(net) {}

  void Restart() { begin_ = Now(); }
  // Collective; all ranks get the same report.
  RanksReport Report();

  // Time during which one lives is not counted, such as tests and snapshots. May be nested; does
  // nothing if `times` is null.
  class Pause {
   public:
    explicit Pause(RankTimes* times);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    RankTimes* times_;  // null within another pause
    RankTime begin_;
  };

 private:
  RankTime Now() const;

  Communicator& group_;
  const Net& net_;
  RankTime begin_;
  bool paused_ = false;
};

}  // namespace trainer
