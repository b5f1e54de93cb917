#pragma once
// Where the time of several replicas goes.

#include <span>

#include "trainer/base/ranks/replica_watch.h"
#include "trainer/monitor/observer.h"
#include "trainer/net/net.h"

namespace trainer {

// What a replica did with some time.
struct TimeSpent {
  double seconds = 0, exchange = 0, data = 0;  // all; in calls of the group; waiting for batches
  double hidden = 0;                           // in which sums were made beside computing
};

// The means over the replicas, and which one the others waited for: the one that spent the least
// time in the exchange, where the others spent more than a tenth of their time more in it. Its name
// is left out.
ReplicasReport Summarize(std::span<const TimeSpent> replicas, int* slowest);

// Counts from Restart or the last report on. Used by the thread that trains.
class ReplicaTimes {
 public:
  // `watch`: the group's. `net`: the training net. All must outlive the object.
  ReplicaTimes(Communicator& group, const ReplicaWatch& watch, const Net& net)
      : group_(group), watch_(watch), net_(net) {}

  void Restart() { begin_ = Now(); }
  // All replicas call it, and all get the same report.
  ReplicasReport Report();

  // What lies between is not counted: tests and snapshots. May be nested; null: nothing.
  class Pause {
   public:
    explicit Pause(ReplicaTimes* times);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    ReplicaTimes* times_;  // null in a pause
    TimeSpent begin_;
  };

 private:
  TimeSpent Now() const;

  Communicator& group_;
  const ReplicaWatch& watch_;
  const Net& net_;
  TimeSpent begin_;
  bool paused_ = false;
};

}  // namespace trainer
