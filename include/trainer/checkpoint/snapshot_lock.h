#pragma once
// Ensures that only one run at a time writes snapshots of one prefix.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "trainer/base/file/file_ops.h"

namespace trainer {

struct LockTimes {
  std::chrono::milliseconds heartbeat = std::chrono::seconds(30);  // between heartbeats
  std::chrono::milliseconds expiry =
      std::chrono::minutes(5);  // after the last heartbeat the owner counts as dead
  std::chrono::milliseconds poll = std::chrono::seconds(1);       // between checks while waiting
  std::chrono::milliseconds wait = std::chrono::milliseconds(0);  // longest wait for another run
};

// Returns the path of the lock: `.<name>.lock` in the folder of the snapshots.
std::string SnapshotLockPath(const std::string& prefix);

// While an object exists, the file SnapshotLockPath(prefix) says which process writes the
// snapshots: its host, number and start time, and the batch job. The file is created with link(),
// which is atomic also on network file systems, and a separate thread updates its time every
// `heartbeat`. The destructor removes it; so does RemoveOwnFiles, if a signal handler ends the
// process.
//
// A lock whose owner is dead is taken over, with a warning. An owner on the same machine (host,
// boot and process-number space) is dead if its process has ended or the process with its number
// started at another time. Any other owner is dead if it did not update the lock for `expiry`, by
// the clock of the file system.
//
// Otherwise the constructor waits up to `wait` for the owner to end. If the owner belongs to the
// same batch job, the job was queued again and its former process is just ending or was lost with
// its node; then the constructor waits at least until the owner counts as dead. Afterwards it
// throws kCannotCreate and names the owner. If the folder cannot be written, it throws as
// ProbeWritable does.
class SnapshotLock {
 public:
  explicit SnapshotLock(const std::string& prefix, const LockTimes& times = {});
  // Returns the lock without waiting, or null if a process that is not dead holds it, even one of
  // the same batch job. Throws as the constructor does if the folder cannot be written.
  static std::unique_ptr<SnapshotLock> Try(const std::string& prefix, const LockTimes& times = {});
  ~SnapshotLock();
  SnapshotLock(const SnapshotLock&) = delete;
  SnapshotLock& operator=(const SnapshotLock&) = delete;

 private:
  struct Unlocked {};  // makes the object without the lock
  SnapshotLock(Unlocked, const std::string& prefix, const LockTimes& times);
  // Called once, when the lock is held.
  void BeginHeartbeats();
  // Runs in the heartbeat thread: updates the lock's time until the object ends. If the lock
  // belongs to another run by now, warns and ends.
  void SendHeartbeats();

  std::string path_, mark_;  // the mark is the content of the file
  LockTimes times_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

// Throws kCannotCreate if a run that is not dead holds the lock of `prefix`, or if the path is not
// a regular file. Writes nothing, so it compares the lock's time with the clock of this machine.
void CheckSnapshotLock(const std::string& prefix, const LockTimes& times = {});

// Returns whether that process of the computer `host` holds the lock of `prefix` and is not dead.
// Writes nothing.
bool HoldsSnapshotLock(const std::string& host, int process, const std::string& prefix);

}  // namespace trainer
