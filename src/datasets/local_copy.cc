#include "trainer/datasets/local_copy.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "local_copy_plan.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/file_system.h"
#include "trainer/base/file/output_file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/text.h"
#include "trainer/input/image_list.h"
#include "trainer/storage/hdf5_list.h"
#include "trainer/storage/path_redirects.h"
#include "trainer/storage/tar_shards.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 600;
constexpr std::chrono::milliseconds kPause(50);
constexpr char kAuto[] = "auto";
constexpr uint64_t kSpareBytes = uint64_t{64} << 20;  // that stay free after copying

// Looks at a data set, again each time it is called.
using FindSource = std::function<LocalCopyPlan()>;

// Why a folder is of no use, for the log.
struct NotCopyable {
  std::string why;
};
// Errors that end the run: the named folder belongs to another user, or the data set is damaged.
struct Fatal {
  Error error;
};

// The user's own folder below `base`, made where it is not there.
std::string PrivateFolder(const std::string& base, bool named) {
  const std::string path = JoinPath(base, Join("trainer-stage-", geteuid()));
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw NotCopyable{Join("cannot make ", path, ": ", std::strerror(errno))};
  }
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) throw NotCopyable{Join(path, ": ", std::strerror(errno))};
  if (S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & 077) == 0)
    return path;
  const std::string why =
      "this folder does not belong to your user only, so another user may have made it";
  if (named) {
    throw Fatal{{ErrorCode::kNoPermission, {path}, why + ": remove it, or give another folder"}};
  }
  throw NotCopyable{path + " " + why};
}

void RequireRoom(const std::string& folder, uint64_t bytes) {
  uint64_t free = 0;
  if (FileOps::Posix().FreeBytes(folder, &free) != 0) {
    throw NotCopyable{Join(folder, ": ", std::strerror(errno))};
  }
  const uint64_t needed = bytes + kSpareBytes;
  if (free < needed) {
    throw NotCopyable{
        Join(folder, " has ", free >> 20, " MiB free, but the copy needs ", needed >> 20)};
  }
  // A copy in memory may use only memory that the run does not need.
  const HostMemory memory = ReadHostMemory();
  if (FileSystemAt(folder).kind == FileSystemKind::kMemory && memory.total > 0 &&
      bytes > memory.available / 2) {
    throw NotCopyable{Join(folder, " is in memory (RAM), and ", memory.available >> 20,
                           " MiB of memory are free; the copy may use half of that")};
  }
}

// The lock on a copy: shared by those that read it, alone for the one that makes or removes it.
class CopyLock {
 public:
  // Throws NotCopyable.
  explicit CopyLock(const std::string& path) : path_(path) { Open(); }
  ~CopyLock() {
    if (fd_ >= 0) close(fd_);
  }
  CopyLock(const CopyLock&) = delete;
  CopyLock& operator=(const CopyLock&) = delete;

  // Waits while another process holds it alone. False where the file was removed meanwhile, by the
  // last user of the copy: it is then another file.
  bool Share() {
    if (flock(fd_, LOCK_SH | LOCK_NB) != 0) {
      LOG(INFO) << EscapeControl(path_)
                << ": another process is copying this data set; waiting for it";
      while (flock(fd_, LOCK_SH) != 0 && errno == EINTR) {
      }
    }
    struct stat held {
    }, there{};
    const bool same =
        fstat(fd_, &held) == 0 && stat(path_.c_str(), &there) == 0 && held.st_ino == there.st_ino;
    if (!same) Open();
    return same;
  }
  // Without waiting. Another process may have had it in between.
  bool TakeAlone() const { return flock(fd_, LOCK_EX | LOCK_NB) == 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  void Open() {
    if (fd_ >= 0) close(fd_);
    try {
      fd_ = OpenOwnFile(path_, O_RDWR | O_CREAT, 0600);
    } catch (const Error& error) {
      throw NotCopyable{error.what()};
    }
    if (fd_ < 0) throw NotCopyable{Join("cannot make ", path_, ": ", std::strerror(errno))};
  }

  const std::string& path_;
  int fd_ = -1;
};

constexpr char kMark[] = ".complete";  // in a copy that was compared with its database

bool IsComplete(const std::string& copy, const LocalCopyPlan& source) {
  return Exists(JoinPath(copy, kMark)) && source.is_whole(copy);
}

// A folder under another name until it is whole. `again`: the state of the data set now.
void CopyFolder(const LocalCopyPlan& source, uint64_t bytes, const FindSource& again,
                const std::string& copy) {
  const std::string partial = copy + ".partial";
  fs::remove_all(partial);
  fs::remove_all(copy);
  if (mkdir(partial.c_str(), 0700) != 0) {
    throw NotCopyable{Join("cannot make ", partial, ": ", std::strerror(errno))};
  }
  try {
    Progress progress(Join("Copying ", source.path, " to ", FolderOf(copy)), "MiB",
                      static_cast<int64_t>(bytes >> 20));
    uint64_t copied = 0;
    source.copy(partial, [&](uint64_t more) {
      progress.Add(static_cast<int64_t>((copied + more) >> 20) -
                   static_cast<int64_t>(copied >> 20));
      copied += more;
    });
    if (again().name != source.name) throw NotCopyable{"the data set changed during the copy"};
    WriteWhole(JoinPath(partial, kMark), "");
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    throw;
  }
  if (rename(partial.c_str(), copy.c_str()) != 0) {
    throw NotCopyable{Join("cannot rename ", partial, ": ", std::strerror(errno))};
  }
}

std::unique_ptr<LocalCopy> StageIn(const std::string& base, const LocalCopyPlan& source,
                                   const FindSource& again, const LocalCopyOptions& options) {
  const std::string folder = PrivateFolder(base, options.folder != kAuto);
  const std::string copy = JoinPath(folder, source.name), lock_path = copy + ".lock";
  CopyLock lock(lock_path);
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (!lock.Share()) continue;
    if (IsComplete(copy, source)) {
      LOG(INFO) << EscapeControl(Join(source.path, ": reading its copy ", copy));
      return std::make_unique<LocalCopy>(copy, lock_path, lock.Release(), options.keep);
    }
    if (!lock.TakeAlone()) {  // others look, too
      std::this_thread::sleep_for(kPause);
      continue;
    }
    if (IsComplete(copy, source)) continue;
    uint64_t bytes = 0;
    try {
      bytes = source.bytes();
      RequireRoom(folder, bytes);
      CopyFolder(source, bytes, again, copy);
    } catch (...) {  // nothing stays; the lock is still this process's alone
      unlink(lock_path.c_str());
      rmdir(folder.c_str());
      throw;
    }
    LOG(INFO) << EscapeControl(Join("Copied ", source.path, " (", bytes >> 20, " MiB) to ", copy,
                                    ", and verified the checksum"));
  }
  throw NotCopyable{Join(copy, " is damaged, but other processes use it")};
}

std::vector<std::string> FoldersOf(const LocalCopyOptions& options) {
  if (options.folder != kAuto) return {options.folder};
  std::vector<std::string> folders;
  for (const char* name : {"SLURM_TMPDIR", "LSCRATCH", "RAMDISK", "TMPDIR"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') folders.emplace_back(value);
  }
  folders.emplace_back("/tmp");
  return folders;
}

// Makes a copy of the data set at `path`, or finds it. Returns null, after a line of the log, if
// the original is to be read. `file` returns one of its files.
std::unique_ptr<LocalCopy> Stage(const std::string& path, const std::function<std::string()>& file,
                                 const FindSource& find, const LocalCopyOptions& options) {
  const bool automatic = options.folder == kAuto;
  std::string reasons;
  const auto add = [&](const std::string& why) { reasons += (reasons.empty() ? "" : "; ") + why; };
  try {
    const FileSystem lies = FileSystemAt(file());
    if (automatic &&
        (lies.kind == FileSystemKind::kLocal || lies.kind == FileSystemKind::kMemory)) {
      LOG(INFO) << EscapeControl(
          Join(path, " is on this machine (", lies.name, "): reading it there, without a copy"));
      return nullptr;
    }
    const LocalCopyPlan source = find();
    for (const std::string& folder : FoldersOf(options)) {
      try {
        if (automatic && FileSystemAt(folder).kind == FileSystemKind::kNetwork) {
          throw NotCopyable{Join(folder, " is on a network file system as well")};
        }
        return StageIn(folder, source, find, options);
      } catch (const NotCopyable& unusable) {
        add(unusable.why);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kData) throw Fatal{error};
        add(error.what());
      }
    }
  } catch (const fs::filesystem_error& error) {
    add(error.what());
  } catch (const Fatal& fatal) {
    throw fatal.error;
  } catch (const Error& error) {
    add(error.what());  // of the data set itself: who opens it says more
  }
  LOG(WARNING) << EscapeControl(
      Join(path, ": not copied to this machine (", reasons, "); reading the original"));
  return nullptr;
}

// From here on these files are read from the copy.
void RedirectFiles(const std::vector<std::string>& files, const LocalCopy& copy) {
  for (size_t i = 0; i < files.size(); ++i) {
    RedirectPath(files[i], JoinPath(copy.path(), NameInCopy(i, files[i])));
  }
}

}  // namespace

LocalCopy::LocalCopy(std::string path, std::string lock_path, int lock, bool keep)
    : path_(std::move(path)), lock_path_(std::move(lock_path)), lock_(lock), keep_(keep) {}

LocalCopy::~LocalCopy() {
  // The process that gets the exclusive lock is the last one.
  if (!keep_ && flock(lock_, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    unlink(lock_path_.c_str());
    rmdir(FolderOf(path_).c_str());  // fails where another copy is in it
  }
  close(lock_);
}

std::unique_ptr<LocalCopy> CopyDatabaseLocally(const std::string& path,
                                               const LocalCopyOptions& options) {
  return Stage(
      path, [&] { return path; }, [&] { return PlanDatabaseCopy(path); }, options);
}

std::unique_ptr<LocalCopy> CopyHdf5ListLocally(const std::string& list,
                                               const LocalCopyOptions& options) {
  const auto first = [&] { return ReadHdf5List(list)[0].path; };
  auto copy = Stage(
      list, first, [&] { return PlanHdf5ListCopy(list); }, options);
  if (copy == nullptr) return nullptr;
  std::vector<std::string> files;
  for (const ListedHdf5& file : ReadHdf5List(list)) files.push_back(file.path);
  RedirectFiles(files, *copy);
  return copy;
}

std::unique_ptr<LocalCopy> CopyTarShardsLocally(const std::string& source,
                                                const LocalCopyOptions& options) {
  auto copy = Stage(
      source, [&] { return ExpandShards(source).front(); },
      [&] { return PlanTarShardCopy(source); }, options);
  if (copy != nullptr) RedirectFiles(ExpandShards(source), *copy);
  return copy;
}

std::unique_ptr<LocalCopy> CopyImageListLocally(const std::string& list, const std::string& root,
                                                const LocalCopyOptions& options) {
  const auto first = [&] { return root + ReadImages(list).images[0].path; };
  auto copy = Stage(
      list, first, [&] { return PlanImageListCopy(list, root); }, options);
  if (copy != nullptr) RedirectToPack(list, root, copy->path());
  return copy;
}

}  // namespace trainer
