#pragma once
// The one thread that calls MPI.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace trainer {

class MpiThread {
 public:
  MpiThread() : thread_([this] { Loop(); }) {}
  // A running task must end first.
  ~MpiThread();

  // Start queues a task after the running one. Run waits for its end and throws what it throws.
  void Start(std::function<void()> task);
  void Run(const std::function<void()>& task);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::function<void()>> task_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace trainer
