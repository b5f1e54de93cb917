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

// A snapshot as messages. Their memory is reused for the next snapshot.
struct SnapshotContent {
  int iter = -1;
  caffe::NetParameter model, averaged;
  bool has_averaged = false;
  caffe::SolverState state;
};

// Used by the training thread. Snapshots are written by a separate thread, which starts with the
// first snapshot. While the training thread does not wait for it, the writing thread computes only
// a small fraction of the time and leaves the cores to training; otherwise it writes as fast as it
// can.
//
// If a write fails because of the disk, its space or its permissions, a warning is logged, and the
// write is tried again after growing pauses, until it succeeds or the next snapshot replaces it. If
// the training thread waits for the snapshot, it is tried three times with pauses of `waited_for`,
// and then the error is thrown; the last snapshot of a run is tried as SetLast says. Any other
// failure is thrown by the next call.
class SnapshotWriter {
 public:
  struct RetryPolicy {
    std::chrono::milliseconds first = std::chrono::seconds(10);  // doubles for each further pause
    std::chrono::milliseconds longest = std::chrono::minutes(5);
    // The pause between the tries of a snapshot for which the training thread waits. For the last
    // snapshot of a run the pause grows to eight times this.
    std::chrono::milliseconds waited_for = std::chrono::seconds(1);
  };

  // How a run's last snapshot is saved if its folder cannot be written.
  struct LastTries {
    std::chrono::steady_clock::time_point until;  // the writer retries until this time
    std::string reason;                           // why it ends then: "the job's time is over then"
    std::vector<std::string> rescue_folders;  // tried in order afterwards, until one is writable
    // The command that resumes from `state`.
    std::function<std::string(const std::string& state)> resume_command;
    bool was_writable = false;  // a test file could be written when the run began
  };

  // The writing thread calls `on_written` once a snapshot is on the disk and was read back.
  SnapshotWriter(std::string prefix, SnapshotFormat format, RetryPolicy pauses,
                 std::function<void(const SnapshotNames&)> on_written);
  // Waits until the snapshot that is being written is complete.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Returns the memory for the next snapshot. Waits while a snapshot is being written, but gives up
  // a snapshot that only waits for its next try.
  SnapshotContent& Next();
  // Starts to write the snapshot that the caller put into the memory of Next. Returns at once.
  void Start();
  // States that the started snapshot is the last one of the run. If it was written to a rescue
  // folder instead, the functions that wait for it throw an error that names this folder, kIo if
  // the snapshot's folder was writable before. May be called again with another time.
  void SetLast(LastTries last);
  // Returns whether the newest try failed.
  bool refused() const { return refused_; }
  // Returns when the started snapshot is on the disk; throws if that fails.
  void Wait();
  // Returns when no snapshot is being written, whether it succeeded or not.
  void WaitIdle();
  // Waits as Wait does, but for at most `time` and without throwing. Returns whether the snapshot
  // is written or has failed.
  bool WaitFor(std::chrono::milliseconds time);
  // Waits as WaitIdle does, but for at most `time`. Returns whether no snapshot is being written.
  bool WaitIdleFor(std::chrono::milliseconds time);
  // Throws the failure of a snapshot that is not tried again, once. Unless a thread waited for the
  // snapshot, the cause was not the disk.
  void ThrowFailure();

  // Returns how many snapshots were written. Any thread may call it.
  int count() const { return count_; }
  // Returns the time, in seconds, that the last snapshot took in total.
  double seconds() const { return seconds_; }
  // Returns the time, in seconds, that the last snapshot took without the writing thread's rests.
  double busy_seconds() const { return busy_seconds_; }
  // Returns whether a snapshot is not written yet.
  bool busy() const { return busy_; }
  // Returns how often a snapshot may still be written, including the last one, which the end of a
  // run must plan for. A disk that refused the newest snapshot may refuse the last one, too.
  int AttemptsLeft() const;
  // Returns the sum of the pauses between the AttemptsLeft() tries.
  std::chrono::milliseconds PausesAhead() const;

 private:
  enum class State { kIdle, kReady, kWriting, kPausing, kFailed };

  // Runs in the writing thread until the writer ends: writes each started snapshot, tries again
  // after pauses, and rescues the last one.
  void Work();
  // Called after a failed try, with the lock held. Waits for the pause and returns whether to try
  // again. Returns false for a failure that the disk did not cause, after the last try, and if the
  // snapshot was given up during the pause.
  bool PausesFor(std::unique_lock<std::mutex>& lock, const std::exception_ptr& failure);
  // Warns, and returns the pause before the next try, which doubles from pauses_.first to
  // pauses_.longest.
  std::chrono::milliseconds PauseWhileTraining(const std::string& trouble) const;
  // Returns the pause while a thread waits for the snapshot: constant for three tries, or for the
  // last snapshot of a run growing until the time of SetLast. Returns nothing after the last try.
  std::optional<std::chrono::milliseconds> PauseWhileWaitedFor(const std::string& trouble);
  // Writes the last snapshot to a rescue folder. Returns an error that says where it is, and why
  // the first write failed.
  std::exception_ptr Rescue(const LastTries& last, const std::exception_ptr& failure);
  // Sets the state, with the lock held, and wakes all threads that wait for a change.
  void SetState(State state);
  // Tries once to write the snapshot, and returns the failure, or null. Called without the lock.
  std::exception_ptr Write();
  // Sleeps for `time`, or until a thread waits for the snapshot, and adds the time slept to
  // rested_.
  void Rest(std::chrono::nanoseconds time);
  // Makes the writing thread write without rests from now on. Called with the lock held.
  void Expedite();

  const std::string prefix_;
  const SnapshotFormat format_;
  const RetryPolicy pauses_;
  const std::function<void(const SnapshotNames&)> on_written_;
  SnapshotContent content_;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  bool ending_ = false, waited_for_ = false;
  bool expedited_ = false;              // a thread waits until no snapshot is being written
  std::chrono::nanoseconds rested_{0};  // during the current try; used only by the writing thread
  int tries_ = 0;                       // of the current snapshot
  int expedited_attempts_ = 0;          // tries while a thread waits for the snapshot
  std::optional<LastTries> last_;
  std::string reason_told_;  // the reason of last_ that was logged
  std::exception_ptr failure_;
  std::atomic<int> count_{0};
  std::atomic<double> seconds_{0}, busy_seconds_{0};
  std::atomic<bool> busy_{false}, failed_{false}, refused_{false};
  std::thread thread_;
};

}  // namespace trainer
