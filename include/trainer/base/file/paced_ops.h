#pragma once
// Writes files in the background of a training without taking its cores.

#include <chrono>
#include <functional>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// Returns the CPU time that the calling thread has used.
std::chrono::nanoseconds ThreadTime();

// Makes the real calls, but rests between them so that the calling thread computes for at most
// `share` of the time. A background thread that computes delays all threads of the training,
// because they wait for the thread whose core it takes. It delays them by its share, so a snapshot
// costs about `share` of the time that writing it takes, however long that is. Only one thread may
// use an object.
class PacedOps : public FileOps {
 public:
  // `rest` sleeps for the given time, or for less if a thread waits for the file. `clock` returns
  // the CPU time that the thread has used.
  PacedOps(double share, std::function<void(std::chrono::nanoseconds)> rest,
           std::function<std::chrono::nanoseconds()> clock = ThreadTime);

  ssize_t Read(int fd, void* to, size_t bytes) override;
  ssize_t Write(int fd, const void* from, size_t bytes) override;

 private:
  // Sleeps for computed * (1 / share - 1), where `computed` is the thread's CPU time since the last
  // rest. Does nothing while that is less than 0.2 ms.
  void Rest();

  const double share_;
  const std::function<void(std::chrono::nanoseconds)> rest_;
  const std::function<std::chrono::nanoseconds()> clock_;
  std::chrono::nanoseconds computed_;  // by the thread until the last rest
};

}  // namespace trainer
