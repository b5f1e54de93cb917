#pragma once
// Notices that the batch job of this process no longer exists, for example because its slurmstepd
// was killed: the queue then neither signals the run nor counts its time.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "batch_job.h"

namespace trainer {

// --job_check: the seconds of the interval.
Flag JobCheckFlag();

// While it lives, a thread looks every two seconds whether the slurmstepd of this process has
// ended, and every `interval` whether the queue still runs the job; an interval of 0 asks nobody.
// If the job is gone, the thread logs why and sends SIGTERM to this process, so that the run saves
// and ends. Outside of a batch job it does nothing.
class JobLife {
 public:
  explicit JobLife(std::chrono::seconds interval);
  ~JobLife();
  JobLife(const JobLife&) = delete;
  JobLife& operator=(const JobLife&) = delete;

 private:
  void Watch();
  // Returns a sentence about how the job was lost, or "" while it still exists.
  std::string FindLoss();

  const BatchJob job_;
  const std::chrono::seconds interval_;
  const pid_t daemon_;
  const std::string daemon_start_;
  std::chrono::steady_clock::time_point next_question_;
  bool was_over_ = false;  // by the last answer of the queue
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace trainer
