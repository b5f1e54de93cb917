#pragma once
// One run at a time writes snapshots of one prefix.

#include <chrono>
#include <condition_variable>
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
  std::chrono::milliseconds poll = std::chrono::seconds(1);       // between looks while waiting
  std::chrono::milliseconds wait = std::chrono::milliseconds(0);  // for another run to end
};

// The path of the lock: `.<name>.lock` beside the snapshots.
std::string SnapshotLockPath(const std::string& prefix);

// While it lives, the file SnapshotLockPath(prefix) says who writes the snapshots: host, process,
// its start time and the batch job. It is made with link(), which is atomic on network file systems
// too, and touched every `beat` by a thread of its own. The destructor removes it, and so does
// whoever ends the process through RemoveOwnFiles.
//
// A lock whose owner is dead is taken over, with a warning. Dead is, of an owner of the same
// machine (host, boot and process-number space), one whose process is gone or started at another
// time; of any other, one that gave no sign of life for `stale`, by the clock of the file system.
//
// Otherwise the constructor waits up to `wait` for the owner to end; when the owner belongs to the
// same batch job, which was then queued again and whose former self is just ending or lost with its
// node, at least until it counts as dead. Then it throws kCannotCreate and names the owner. A
// folder that cannot be written is refused as ProbeWritable does.
class SnapshotLock {
 public:
  explicit SnapshotLock(const std::string& prefix, const LockTimes& times = {});
  ~SnapshotLock();
  SnapshotLock(const SnapshotLock&) = delete;
  SnapshotLock& operator=(const SnapshotLock&) = delete;

 private:
  void SendHeartbeats();

  std::string path_, mark_;
  LockTimes times_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

// Throws kCannotCreate when a run that is not dead holds the lock of `prefix`. Writes nothing.
void CheckSnapshotLock(const std::string& prefix, const LockTimes& times = {});

// Who holds the lock of `prefix`, unless that run is dead.
struct LockHolder {
  std::string host;
  int process = 0;
};
std::optional<LockHolder> SnapshotLockHolder(const std::string& prefix,
                                             const LockTimes& times = {});

}  // namespace trainer
