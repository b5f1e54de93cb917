#pragma once

#include <string>

namespace trainer {

// How long a rank communicates and waits, for reports. A Communicator that measures it implements
// this, too.
class CommStats {
 public:
  virtual ~CommStats() = default;
  // The name of a rank in messages: "rank 1 (node7, process 4711)".
  virtual std::string NameOf(int rank) const = 0;
  // Seconds that the training thread has spent in calls of the communicator, most of them waiting.
  virtual double CommSeconds() const = 0;
  // Seconds in which another thread reduced while the training thread computed.
  virtual double OverlappedSeconds() const = 0;
};

}  // namespace trainer
