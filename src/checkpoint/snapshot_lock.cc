#include "trainer/checkpoint/snapshot_lock.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "lock_owner.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/own_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kSnapshotLockMaxBytes = 4096;
constexpr milliseconds kClocksDiffer = std::chrono::seconds(60);

// Throws kCannotCreate if something exists at `path` that no run creates as a lock: a link, a pipe,
// ... It would never go away by itself. A missing file and any regular file pass.
void RequireLock(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return;
  const char* const kind = S_ISLNK(info.st_mode)    ? "a symbolic link"
                           : S_ISFIFO(info.st_mode) ? "a pipe (FIFO)"
                           : S_ISDIR(info.st_mode)  ? "a folder"
                                                    : "not a regular file";
  throw Error(ErrorCode::kCannotCreate, {AbsolutePath(path)},
              Join("is ", kind,
                   ", but the path is needed for the lock file of the snapshots; remove it, or set "
                   "another snapshot_prefix"));
}

// A lock that exists.
struct Found {
  std::string text;
  LockOwner owner;
  struct timespec touched = {};
};

// Reads the lock. Returns nothing, with errno, if it does not exist or cannot be opened. Opening
// the file makes a network file system ask its server.
std::optional<Found> ReadLock(const std::string& path) {
  const int fd = FileOps::Posix().Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
  if (fd < 0) return std::nullopt;
  const FileHandle file(FileOps::Posix(), fd);
  Found found;
  struct stat info {};
  if (fstat(fd, &info) != 0) return std::nullopt;
  found.touched = info.st_mtim;
  found.text.resize(kSnapshotLockMaxBytes);
  const ssize_t got = FileOps::Posix().Read(fd, found.text.data(), kSnapshotLockMaxBytes);
  found.text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  found.owner = LockOwner::Parse(found.text);
  return found;
}

// Returns now - then, negative if `then` is later.
milliseconds Since(const struct timespec& then, const struct timespec& now) {
  return milliseconds((now.tv_sec - then.tv_sec) * 1000 + (now.tv_nsec - then.tv_nsec) / 1000000);
}

struct timespec WallClock() {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

// Returns the time in seconds for a message, rounded down to tenths.
double Seconds(milliseconds time) { return static_cast<double>(time.count() / 100) / 10; }

// Returns the reason to treat the lock's owner as dead, worded for a message: "which is no longer
// running". Returns "" if the owner may still run.
std::string WhyDead(const Found& found, const struct timespec& now, const LockTimes& times) {
  const LockOwner::Life life = found.owner.CheckLiveness();
  if (life == LockOwner::Life::kGone) return "which is no longer running";
  if (life == LockOwner::Life::kRuns) return "";
  const milliseconds silent = Since(found.touched, now);
  if (silent <= times.expiry) return "";
  return Join("which did not update the lock for ", Seconds(silent), " s");
}

// Returns a hint if the clocks differ so much that the age of the lock is not known, else "".
std::string AboutClocks(const std::string& path, const Found& found) {
  const milliseconds ahead = -Since(found.touched, WallClock());
  if (ahead <= kClocksDiffer || found.owner.CheckLiveness() != LockOwner::Life::kUnknown) return "";
  return Join(
      ". The lock was last updated ", Seconds(ahead), " s in the future: the clocks ",
      "of the machines or of the file server differ (see 'timedatectl'), so the run does not ",
      "count as dead before that time. If that run has ended, remove ", AbsolutePath(path));
}

// Throws kCannotCreate for a lock whose owner is active. The message names the owner and what to
// do.
[[noreturn]] void Refuse(const std::string& path, const std::string& prefix, const Found& found,
                         const LockTimes& times) {
  throw Error(ErrorCode::kCannotCreate, {AbsolutePath(path)},
              EscapeControl(Join(
                  "the snapshots of '", prefix, "' belong to another run that is active, ",
                  found.owner.Describe(), "; wait until it ends (--lock_wait=SECONDS), or ",
                  "give this run another snapshot_prefix. The lock of a dead run is ",
                  "removed automatically; if it ran on another machine, ", Seconds(times.expiry),
                  " s after its last update", AboutClocks(path, found))));
}

// A file with the content of the new lock, under a hidden name that no other process uses.
class Candidate {
 public:
  Candidate(const std::string& prefix, const std::string& path, const LockOwner& owner)
      : temp_(TempPathFor(Join(prefix, ".lock.", owner.token))) {
    FileOps& ops = FileOps::Posix();
    const std::string text = owner.Text();
    FileHandle file(ops, ops.Open(temp_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
    if (file.get() < 0) Fail("create", path, errno);
    const ssize_t wrote = ops.Write(file.get(), text.data(), text.size());
    const int failure = wrote == static_cast<ssize_t>(text.size()) ? 0 : wrote < 0 ? errno : ENOSPC;
    struct stat info {};
    const bool known = fstat(file.get(), &info) == 0;
    now_ = known ? info.st_mtim : WallClock();
    if (failure == 0 && file.Close() == 0) return;
    const int reason = failure == 0 ? errno : failure;
    ops.Unlink(temp_);
    Fail("write", path, reason);
  }
  ~Candidate() { FileOps::Posix().Unlink(temp_); }
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  // Returns the current time by the clock that also stamps the lock.
  const struct timespec& now() const { return now_; }

  // Tries to make the file the lock and returns whether it succeeded. The reply of a network file
  // system may get lost, so the call has failed only if the file has no second name.
  bool Become(const std::string& path) const {
    if (FileOps::Posix().Link(temp_, path) == 0) return true;
    const int reason = errno;
    struct stat info {};
    if (stat(temp_.c_str(), &info) == 0 && info.st_nlink == 2) return true;
    if (reason == EEXIST) return false;
    if (reason == EPERM || reason == ENOTSUP || reason == EOPNOTSUPP || reason == ENOSYS ||
        reason == EMLINK) {
      return CopyTo(path);
    }
    Fail("create", path, reason);
  }

 private:
  [[noreturn]] static void Fail(const char* doing, const std::string& path, int reason) {
    ThrowFileError(FileUse::kOutput, Join(doing, " the lock file of the snapshots"),
                   AbsolutePath(path), reason);
  }

  // Creates the lock on file systems without hard links, and returns false if it exists. Unlike
  // link(), this shows other processes an empty file for a moment.
  bool CopyTo(const std::string& path) const {
    FileOps& ops = FileOps::Posix();
    FileHandle file(ops, ops.Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
    if (file.get() < 0 && errno == EEXIST) return false;
    if (file.get() < 0) Fail("create", path, errno);
    const std::string text = ReadFile(temp_, kSnapshotLockMaxBytes);
    if (ops.Write(file.get(), text.data(), text.size()) < 0) Fail("write", path, errno);
    return true;
  }

  std::string temp_;
  struct timespec now_ = {};
};

std::optional<Found> AcquireLock(const std::string& prefix, const std::string& path,
                                 const LockOwner& self, const LockTimes& times);

// Replaces the lock `dead` at `path` by a lock of `self`, unless another process has done so since
// `dead` was read. Only the process that holds the lock PATH.takeover may replace the lock at
// `path`, so that no two processes replace it one after the other. If another process holds
// PATH.takeover, returns that lock: its owner is about to own `path`.
std::optional<Found> TakeOver(const std::string& prefix, const std::string& path, const Found& dead,
                              const std::string& death, const LockOwner& self,
                              const LockTimes& times) {
  FileOps& ops = FileOps::Posix();
  const std::string takeover = path + ".takeover";
  if (std::optional<Found> rival = AcquireLock(prefix, takeover, self, times)) return rival;
  const std::optional<Found> found = ReadLock(path);
  if (!found || found->text != dead.text) {
    ops.Unlink(takeover);
    return std::nullopt;
  }
  // A network file system reports ENOENT if it repeated a rename() that had succeeded.
  if (ops.Rename(takeover, path) != 0 && errno != ENOENT) {
    const int reason = errno;
    ops.Unlink(takeover);
    ThrowFileError(FileUse::kOutput, "take over the lock file of a dead run", AbsolutePath(path),
                   reason);
  }
  LOG(WARNING) << EscapeControl(
      Join("Took over the lock of '", prefix, "' from ", dead.owner.Describe(), ", ", death));
  return std::nullopt;
}

// Acquires the lock for this process and returns nothing. If a run that is not dead holds the lock,
// or takes it over, returns the lock of that run.
std::optional<Found> AcquireLock(const std::string& prefix, const std::string& path,
                                 const LockOwner& self, const LockTimes& times) {
  for (;;) {
    struct timespec now {};
    {
      const Candidate candidate(prefix, path, self);
      if (candidate.Become(path)) return std::nullopt;
      now = candidate.now();
    }
    RequireLock(path);
    std::optional<Found> found = ReadLock(path);
    if (!found) continue;                                 // it was removed in the meantime
    if (found->text == self.Text()) return std::nullopt;  // TakeOver() has succeeded
    const std::string death = WhyDead(*found, now, times);
    if (death.empty()) return found;
    found = TakeOver(prefix, path, *found, death, self, times);
    if (found) return found;
  }
}

// Returns the lock of `prefix` with its owner, or nothing if that run is dead. Compares the lock's
// time with this machine's clock.
std::optional<Found> HolderOf(const std::string& prefix, const LockTimes& times) {
  const std::string path = SnapshotLockPath(prefix);
  std::optional<Found> found = ReadLock(path);
  if (found && !WhyDead(*found, WallClock(), times).empty()) found.reset();
  return found;
}

}  // namespace

std::string SnapshotLockPath(const std::string& prefix) {
  return JoinPath(FolderOf(prefix), Join(".", FileNameOf(prefix), ".lock"));
}

SnapshotLock::SnapshotLock(Unlocked, const std::string& prefix, const LockTimes& times)
    : path_(SnapshotLockPath(prefix)), times_(times) {
  CheckWritable(prefix, 0);
}

std::unique_ptr<SnapshotLock> SnapshotLock::Try(const std::string& prefix, const LockTimes& times) {
  std::unique_ptr<SnapshotLock> lock(new SnapshotLock(Unlocked(), prefix, times));
  const LockOwner self = LockOwner::Self();
  if (AcquireLock(prefix, lock->path_, self, times)) return nullptr;
  lock->mark_ = self.Text();
  lock->BeginHeartbeats();
  return lock;
}

SnapshotLock::SnapshotLock(const std::string& prefix, const LockTimes& times)
    : SnapshotLock(Unlocked(), prefix, times) {
  const LockOwner self = LockOwner::Self();
  mark_ = self.Text();
  const auto start = std::chrono::steady_clock::now();
  bool told = false;
  while (const std::optional<Found> found = AcquireLock(prefix, path_, self, times_)) {
    const bool same_job = !self.job.empty() && found->owner.job == self.job;
    const milliseconds wait =
        same_job ? std::max(times_.wait, times_.expiry + times_.heartbeat) : times_.wait;
    if (std::chrono::steady_clock::now() - start >= wait) Refuse(path_, prefix, *found, times_);
    if (!told) {
      LOG(WARNING) << EscapeControl(Join("The snapshots of '", prefix, "' belong to ",
                                         found->owner.Describe(), "; waiting up to ", Seconds(wait),
                                         " s for it to end"));
    }
    told = true;
    std::this_thread::sleep_for(times_.poll);
  }
  BeginHeartbeats();
}

void SnapshotLock::BeginHeartbeats() {
  RememberOwnFile(path_, mark_);
  thread_ = std::thread([this] { SendHeartbeats(); });
}

SnapshotLock::~SnapshotLock() {
  if (!thread_.joinable()) return;  // the lock was not acquired
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  thread_.join();
  ForgetOwnFile(path_);
  const std::optional<Found> found = ReadLock(path_);
  if (found && found->text == mark_) FileOps::Posix().Unlink(path_);
}

void SnapshotLock::SendHeartbeats() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, times_.heartbeat, [this] { return ending_; })) {
    const std::optional<Found> found = ReadLock(path_);
    if (found && found->text == mark_) {
      utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
      continue;
    }
    if (!found && errno != ENOENT) continue;  // the file system is unavailable, but may return
    LOG(WARNING) << EscapeControl(Join("The lock ", AbsolutePath(path_),
                                       " no longer belongs to this ",
                                       "run: another run may write the same snapshots"));
    return;
  }
}

void CheckSnapshotLock(const std::string& prefix, const LockTimes& times) {
  RequireLock(SnapshotLockPath(prefix));
  const std::optional<Found> found = HolderOf(prefix, times);
  if (found) Refuse(SnapshotLockPath(prefix), prefix, *found, times);
}

bool HoldsSnapshotLock(const std::string& host, int process, const std::string& prefix) {
  const std::optional<Found> found = HolderOf(prefix, LockTimes());
  return found && found->owner.host == host && found->owner.pid == process;
}

}  // namespace trainer
