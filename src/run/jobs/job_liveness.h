#pragma once
// Notices that the batch job of this process no longer exists, for example because its slurmstepd
// was killed: the queue then neither signals the run nor counts its time.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/run/jobs/scheduler.h"

namespace trainer {

// Whether the answer of `squeue -h -j ID -o %T` or `qstat -f ID` means that the job is over,
// unknown or queued again. A command that failed for another reason means neither.
bool JobIsOver(BatchSystem system, const CommandResult& answer);

// While an object exists, a thread checks every two seconds whether the slurmstepd of this process
// has ended, and every `interval` whether the queue still runs the job; with an interval of 0 it
// does not ask the queue. If the job is gone, the thread logs the reason and sends SIGTERM to this
// process, so that the run saves and ends. Outside of a batch job an object does nothing.
class JobLiveness {
 public:
  explicit JobLiveness(std::chrono::seconds interval, SchedulerAccess access = {});
  ~JobLiveness();
  JobLiveness(const JobLiveness&) = delete;
  JobLiveness& operator=(const JobLiveness&) = delete;

 private:
  // Runs in `thread_`: calls FindLoss every two seconds until the object is destroyed or the job is
  // lost; then sends one SIGTERM.
  void Watch();
  // Returns a sentence about how the job was lost, or "" while it still exists. The queue must
  // report twice in a row that the job is over, because a single answer can be wrong.
  std::string FindLoss();

  const SchedulerAccess access_;
  const SchedulerJob job_;
  const std::chrono::seconds interval_;
  const pid_t daemon_;
  const std::string daemon_start_;
  std::chrono::steady_clock::time_point next_question_;
  bool was_over_ = false;  // according to the last answer of the queue
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace trainer
