#pragma once
// A thread that runs tasks. It is the only thread that calls MPI.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace trainer {

// Runs one task at a time, in the order of the calls.
class MpiThread {
 public:
  MpiThread() : thread_([this] { Loop(); }) {}
  // Waits for the running task.
  ~MpiThread();

  // Waits for the running task, then starts this one and returns. `task` must not throw.
  void Start(std::function<void()> task);
  // Waits for the running task, then runs this one, waits until it has ended and throws what it
  // throws.
  void Run(const std::function<void()>& task);

 private:
  // Runs tasks until the destructor is called.
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::function<void()>> task_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace trainer
