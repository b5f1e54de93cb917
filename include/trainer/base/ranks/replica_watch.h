#pragma once

#include <string>

namespace trainer {

// Implemented by a Communicator that measures how long ranks wait, for reports.
class ReplicaWatch {
 public:
  virtual ~ReplicaWatch() = default;
  // A replica in messages: "rank 1 (node7, process 4711)".
  virtual std::string NameOf(int rank) const = 0;
  // How long the thread that trains has been in the group's calls: what the exchange costs it, most
  // of it waiting.
  virtual double SecondsSpent() const = 0;
  // How long sums were made on another thread while that one computed.
  virtual double SecondsHidden() const = 0;
};

}  // namespace trainer
