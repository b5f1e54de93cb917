#include "mpi/mpi_thread.h"

#include <exception>
#include <utility>

namespace trainer {

MpiThread::~MpiThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MpiThread::Start(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !task_ && !busy_; });
  task_ = std::move(task);
  changed_.notify_all();
}

void MpiThread::Run(const std::function<void()>& task) {
  std::exception_ptr error;
  Start([&] {
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !task_ && !busy_; });
  if (error) std::rethrow_exception(error);
}

void MpiThread::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return task_ || ending_; });
    if (!task_) return;
    const std::function<void()> task = std::move(*task_);
    task_.reset();
    busy_ = true;
    lock.unlock();
    task();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace trainer
