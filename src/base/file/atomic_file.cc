#include "trainer/base/file/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "trainer/base/file/file.h"
#include "trainer/base/file/output_file.h"
#include "trainer/base/file/own_file.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/process/process_life.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

// Returns the end of a temporary file's name before the number of its process: ".tmp.HOST.".
std::string TempMark() {
  const std::string host = HostName();
  return Join(".tmp.", host.empty() ? "localhost" : host, ".");
}

// Returns the process that made the temporary file `name` on this host; 0 for any other file.
pid_t OwnerOf(const std::string& name) {
  const std::string mark = TempMark();
  const size_t at = name.rfind(mark);
  if (!name.starts_with('.') || at == std::string::npos) return 0;
  return std::max(ParseNumber<pid_t>(name.substr(at + mark.size())).value_or(0), 0);
}

// Returns whether the process `pid` has ended. Its own number counts too, because before the first
// snapshot a file with this number comes from an earlier process.
bool IsGone(pid_t pid) { return pid == getpid() || ProcessHasEnded(pid); }

// Formats a size for a message: in MB (10^6 bytes) with two decimals, or in bytes below 1 MB.
std::string Amount(uint64_t bytes) {
  if (bytes < 1000000) return Join(bytes, " bytes");
  return Join(static_cast<double>(bytes / 10000) / 100.0, " MB");
}

}  // namespace

std::string TempPathFor(const std::string& path) {
  return JoinPath(FolderOf(path), Join(".", FileNameOf(path), TempMark(), getpid()));
}

AtomicFile::AtomicFile(const std::string& path, FileOps& ops)
    : path_(path), temp_(TempPathFor(path)), ops_(ops) {
  buffer_.reserve(kBufferBytes);
  int error = 0;
  {
    const OwnFileCreation creation(temp_);
    try {
      fd_ = OpenOwnFile(temp_, O_WRONLY | O_CREAT | O_TRUNC, 0666, ops_);
      error = errno;
    } catch (const Error&) {
      ForgetOwnFile(temp_);  // the existing file belongs to another process and must stay
      throw;
    }
  }
  if (fd_ < 0) {
    ForgetOwnFile(temp_);
    ThrowFileError(FileUse::kOutput, "create", AbsolutePath(path_), error);
  }
  temp_exists_ = true;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ops_.Close(fd_);
  if (!temp_exists_) return;
  ops_.Unlink(temp_);
  ForgetOwnFile(temp_);
}

void AtomicFile::Append(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  crc_ = Crc32c(from, bytes, crc_);
  size_ += bytes;
  if (buffer_.size() + bytes > kBufferBytes) Flush();
  if (bytes >= kBufferBytes) {
    WriteAll(from, bytes);
  } else {
    buffer_.append(from, bytes);
  }
}

void AtomicFile::Flush() {
  WriteAll(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::WriteAll(const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t wrote = ops_.Write(fd_, data, bytes);
    if (wrote <= 0) {
      ThrowFileError(FileUse::kOutput, "write", AbsolutePath(path_), wrote < 0 ? errno : ENOSPC);
    }
    data += wrote;
    bytes -= static_cast<size_t>(wrote);
  }
}

void AtomicFile::Finish() {
  Flush();
  if (ops_.Fsync(fd_) != 0) {
    ThrowFileError(FileUse::kOutput, "write to disk (fsync)", AbsolutePath(path_), errno);
  }
  // Verify then reads from the disk rather than from the cache, if the system follows the advice.
  posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
  const int fd = fd_;
  fd_ = -1;
  if (ops_.Close(fd) != 0) {
    ThrowFileError(FileUse::kOutput, "write (close)", AbsolutePath(path_), errno);
  }
  Verify();
}

void AtomicFile::Verify() {
  FileHandle file(ops_, ops_.Open(temp_, O_RDONLY | O_NOFOLLOW, 0));
  if (file.get() < 0) ThrowFileError(FileUse::kOutput, "read back", AbsolutePath(path_), errno);
  buffer_.resize(kBufferBytes);
  uint32_t crc = 0;
  uint64_t size = 0;
  for (;;) {
    const ssize_t got = ops_.Read(file.get(), buffer_.data(), buffer_.size());
    if (got < 0) ThrowFileError(FileUse::kOutput, "read back", AbsolutePath(path_), errno);
    if (got == 0) break;
    crc = Crc32c(buffer_.data(), static_cast<size_t>(got), crc);
    size += static_cast<uint64_t>(got);
  }
  if (file.Close() != 0) {
    ThrowFileError(FileUse::kOutput, "read back (close)", AbsolutePath(path_), errno);
  }
  if (size != size_ || crc != crc_) {
    throw Error(ErrorCode::kIo, {AbsolutePath(path_)},
                Join("the disk returned different bytes than were written (", size, " of ", size_,
                     " bytes); the disk or its driver is faulty: use another one"));
  }
  buffer_ = {};
}

void AtomicFile::Place() {
  if (ops_.Rename(temp_, path_) != 0) {
    ThrowFileError(FileUse::kOutput, "put the new file in place (rename)", AbsolutePath(path_),
                   errno);
  }
  temp_exists_ = false;
  ForgetOwnFile(temp_);
}

void AtomicFile::Commit() {
  Finish();
  Place();
  SyncFolder(FolderOf(path_), ops_);
}

void WriteWhole(const std::string& path, std::string_view bytes, FileOps& ops) {
  AtomicFile file(path, ops);
  file.Append(bytes.data(), bytes.size());
  file.Commit();
}

void PlaceWhole(const std::string& temp, const std::string& path, FileOps& ops) {
  const auto fail = [&](const char* doing) {
    ThrowFileError(FileUse::kOutput, doing, AbsolutePath(path), errno);
  };
  FileHandle file(ops, ops.Open(temp, O_RDONLY | O_NOFOLLOW, 0));
  if (file.get() < 0) fail("open the new file");
  if (ops.Fsync(file.get()) != 0) fail("write to disk (fsync)");
  if (file.Close() != 0) fail("write (close)");
  if (ops.Rename(temp, path) != 0) fail("put the new file in place (rename)");
  SyncFolder(FolderOf(path), ops);
}

void SyncFolder(const std::string& folder, FileOps& ops) {
  FileHandle handle(ops, ops.Open(folder, O_RDONLY | O_DIRECTORY, 0));
  const auto fail = [&] {
    ThrowFileError(FileUse::kOutput, "make the folder's new entries permanent (fsync)",
                   AbsolutePath(folder), errno);
  };
  if (handle.get() < 0) fail();
  // Some network file systems cannot flush a folder and say so; their renames are synchronous.
  if (ops.Fsync(handle.get()) != 0 && errno != EINVAL && errno != ENOTSUP) fail();
  if (handle.Close() != 0) fail();
}

namespace {

// Creates a test file at `temp`, writes and flushes 4 KiB, allocates `bytes` bytes where the file
// system supports it, and removes the file. Returns 0, or the errno of the first failure.
int TryFile(const std::string& temp, uint64_t bytes, FileOps& ops) {
  const std::vector<char> block(4096, 'x');
  FileHandle file(ops, OpenOwnFile(temp, O_WRONLY | O_CREAT | O_TRUNC, 0666, ops));
  if (file.get() < 0) return errno;
  int failure = 0;
  const auto note = [&failure](bool failed) {
    if (failed && failure == 0) failure = errno;
  };
  const ssize_t wrote = ops.Write(file.get(), block.data(), block.size());
  note(wrote < 0);
  if (wrote >= 0 && wrote < static_cast<ssize_t>(block.size())) failure = ENOSPC;
  note(ops.Fsync(file.get()) != 0);
  if (bytes > block.size() && ops.Allocate(file.get(), bytes) != 0) {
    note(errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL);
  }
  note(file.Close() != 0);
  note(ops.Unlink(temp) != 0);
  return failure;
}

}  // namespace

void CheckNameLength(const std::string& path) {
  const std::string folder = FolderOf(path), temp = FileNameOf(TempPathFor(path));
  const long longest = pathconf(folder.c_str(), _PC_NAME_MAX);
  if (longest <= 0 || temp.size() <= static_cast<size_t>(longest)) return;
  throw Error(
      ErrorCode::kCannotCreate, {AbsolutePath(folder)},
      Join("the file '", EscapeControl(FileNameOf(path)), "' would have the name '",
           EscapeControl(temp), "' while it is written, ", temp.size(),
           " bytes; names on this disk can have at most ", longest, ": choose a shorter one"));
}

void CheckWritable(const std::string& prefix, uint64_t needed_bytes, FileOps& ops) {
  const std::string folder = FolderOf(prefix);
  const SourceRef place{AbsolutePath(folder)};
  if (!IsDirectory(folder)) {
    throw Error(ErrorCode::kCannotCreate, place,
                Exists(folder) ? "this is not a folder, so no snapshot can be written there; set "
                                 "another snapshot_prefix"
                               : "the folder for snapshots does not exist; create it (mkdir -p) or "
                                 "set another snapshot_prefix");
  }
  uint64_t free = 0;
  if (ops.FreeBytes(folder, &free) != 0) {
    ThrowFileError(FileUse::kOutput, "read the free space", place.file, errno);
  }
  if (free < needed_bytes) {
    throw Error(ErrorCode::kIo, place,
                Join("a snapshot needs ", Amount(needed_bytes), " but only ", Amount(free),
                     " are free; free some space or set snapshot_prefix to another disk"));
  }
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    ThrowFileError(FileUse::kOutput, "write snapshots here", place.file, errno);
  }
}

void ProbeWritable(const std::string& prefix, uint64_t needed_bytes, FileOps& ops) {
  CheckWritable(prefix, needed_bytes, ops);
  const int failure = TryFile(TempPathFor(prefix + ".probe"), needed_bytes, ops);
  if (failure != 0) {
    ThrowFileError(FileUse::kOutput, Join("write a snapshot of ", Amount(needed_bytes), " here"),
                   AbsolutePath(FolderOf(prefix)), failure);
  }
}

int RemoveStrayTemps(const std::string& prefix, FileOps& ops) {
  std::vector<std::string> strays;
  std::error_code failed;
  std::filesystem::directory_iterator entry(FolderOf(prefix), failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    const pid_t pid = OwnerOf(name);
    if (pid != 0 && IsGone(pid) && name.starts_with("." + FileNameOf(prefix))) {
      strays.push_back(entry->path().string());
    }
  }
  return static_cast<int>(std::ranges::count_if(
      strays, [&](const std::string& path) { return ops.Unlink(path) == 0; }));
}

}  // namespace trainer
