#pragma once
// Writes snapshots from a copy while training continues.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/checkpoint/snapshot_files.h"

namespace trainer {

// A snapshot as messages, whose memory is reused for the next one.
struct SnapshotContent {
  int iter = -1;
  caffe::NetParameter model, averaged;
  bool has_averaged = false;
  caffe::SolverState state;
};

struct RetryPolicy {
  std::chrono::milliseconds first = std::chrono::seconds(10);  // each is twice the one before
  std::chrono::milliseconds longest = std::chrono::minutes(5);
  // Between the tries of a snapshot that somebody waits for; those of the last one grow to eight
  // times this.
  std::chrono::milliseconds waited_for = std::chrono::seconds(1);
};

// How a run's last snapshot is saved where its folder refuses it.
struct LastTries {
  std::chrono::steady_clock::time_point until;  // it is tried until then
  std::string reason;                           // why until then: "the job's time is over then"
  std::vector<std::string> rescue_folders;  // where it is written afterwards: the first that can
  // The command that resumes from `state`.
  std::function<std::string(const std::string& state)> resume_command;
  bool was_writable = false;  // the folder took a test file when the run began
};

// Used by the training thread. Writes on a thread of its own, which starts with the first snapshot.
// While the training thread does not wait for it, that thread computes only a small fraction of the
// time and leaves the cores to training; otherwise it writes as fast as it can.
//
// A write that finds no room, no right or no disk is a warning, and is tried again, after growing
// pauses, until it succeeds or the next snapshot takes its place. Whoever waits for it has it tried
// three times at once, and then gets the error; the last snapshot of a run is tried as SetLast
// says. Any other failure is thrown by the next call.
class SnapshotWriter {
 public:
  // `on_written` is called on the writing thread once a snapshot is on the disk and was read back.
  SnapshotWriter(std::string prefix, SnapshotFormat format, RetryPolicy pauses,
                 std::function<void(const SnapshotNames&)> on_written);
  // Waits until the snapshot that is being written is complete.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // The memory for the next snapshot. Waits while one is being written; one that is waiting to be
  // tried again is given up.
  SnapshotContent& Next();
  // Starts to write it.
  void Start();
  // What was started is the last snapshot of the run. Whoever waits for it gets an error that names
  // the rescue folder where it was written instead, kIo where the folder was writable before. May
  // be called again with another time.
  void SetLast(LastTries last);
  // Whether the newest try failed.
  bool refused() const { return refused_; }
  // Returns when the started snapshot is on the disk; throws if that fails.
  void Wait();
  // Returns when no snapshot is being written, whether it succeeded or not.
  void WaitIdle();
  // As Wait and Settle, for so long at most and throwing nothing: whether it is so.
  bool WaitFor(std::chrono::milliseconds time);
  bool WaitIdleFor(std::chrono::milliseconds time);
  // Throws a failure that has other reasons than the disk.
  void ThrowFailure();

  // How many were written. Any thread.
  int count() const { return count_; }
  // The time that the last of them took, in seconds: all of it, and what it takes without rests.
  double seconds() const { return seconds_; }
  double busy_seconds() const { return busy_seconds_; }
  // Whether something is not written yet.
  bool busy() const { return busy_; }
  // What the end of a run has to expect: how often a snapshot may still be written, the last one
  // included, and the pauses between. A disk that refused the newest one may refuse the last, too.
  int AttemptsLeft() const;
  std::chrono::milliseconds PausesAhead() const;

 private:
  enum class State { kIdle, kReady, kWriting, kPausing, kFailed };

  void Work();
  // After a failed try, with the lock held: whether to try again, after the pause.
  bool PausesFor(std::unique_lock<std::mutex>& lock, const std::exception_ptr& failure);
  std::chrono::milliseconds PauseWhileTraining(const std::string& trouble) const;
  std::optional<std::chrono::milliseconds> PauseWhileWaitedFor(const std::string& trouble);
  std::exception_ptr Rescue(const LastTries& last, const std::exception_ptr& failure);
  void SetState(State state);
  std::exception_ptr Write();
  void Rest(std::chrono::nanoseconds time);
  void Expedite();  // with the lock held

  const std::string prefix_;
  const SnapshotFormat format_;
  const RetryPolicy pauses_;
  const std::function<void(const SnapshotNames&)> on_written_;
  SnapshotContent content_;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  bool ending_ = false, waited_for_ = false;
  bool expedited_ = false;              // somebody waits until nothing is being written
  std::chrono::nanoseconds rested_{0};  // of the try in hand; the writing thread's own
  int tries_ = 0;                       // of the snapshot in hand
  int expedited_attempts_ = 0;          // those that somebody waits for
  std::optional<LastTries> last_;
  std::string reason_told_;  // of last_, in the log
  std::exception_ptr failure_;
  std::atomic<int> count_{0};
  std::atomic<double> seconds_{0}, busy_seconds_{0};
  std::atomic<bool> busy_{false}, failed_{false}, refused_{false};
  std::thread thread_;
};

}  // namespace trainer
