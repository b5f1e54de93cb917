#pragma once
// Measures how the ranks of a run spend their time.

#include <span>

#include "trainer/monitor/observer.h"
#include "trainer/net/net.h"

namespace trainer {

// The seconds of one rank.
struct RankTime {
  double seconds = 0, exchange = 0,
         data = 0;    // all; in the communicator; waiting for data
  double hidden = 0;  // in all-reduces that overlapped with computation
};

// Computes the means over the ranks and finds the straggler: the rank that spent the least time in
// the communicator, if the others spent a larger fraction of their time there by more than 0.1.
// Does not set its name.
RanksReport Summarize(std::span<const RankTime> ranks, int* straggler);

// Measures from Restart or from the last report. Used by the training thread.
class RankTimes {
 public:
  // `group` must have stats(), and `net` is the training net. Both must outlive the object.
  RankTimes(Communicator& group, const Net& net) : group_(group), net_(net) {}

  void Restart() { begin_ = Now(); }
  // Returns the times since the last report. Collective; all ranks get the same report.
  RanksReport Report();

  // Time while a Pause exists is not counted, such as the time of tests and snapshots. Pauses may
  // be nested; a null `times` does nothing.
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
