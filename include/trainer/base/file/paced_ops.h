#pragma once
// Writes files in the background of a training without taking its cores.

#include <chrono>
#include <functional>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// The time that the calling thread has computed.
std::chrono::nanoseconds ThreadTime();

// Makes the real calls, but rests between them so that the calling thread computes no more than
// `share` of the time. A background thread that computes delays every thread of the training, since
// those wait for the one whose core it takes: what it costs them is its share, so a snapshot costs
// about `share` of the time of writing it, however long that is. One thread.
class PacedOps : public FileOps {
 public:
  // `rest` sleeps for the time, or less where somebody waits for the file. `clock` is the time that
  // the thread has computed.
  PacedOps(double share, std::function<void(std::chrono::nanoseconds)> rest,
           std::function<std::chrono::nanoseconds()> clock = ThreadTime);

  ssize_t Read(int fd, void* to, size_t bytes) override;
  ssize_t Write(int fd, const void* from, size_t bytes) override;

 private:
  void Rest();

  const double share_;
  const std::function<void(std::chrono::nanoseconds)> rest_;
  const std::function<std::chrono::nanoseconds()> clock_;
  std::chrono::nanoseconds computed_;  // by the thread until the last rest
};

}  // namespace trainer
