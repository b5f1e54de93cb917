#pragma once
// Output files that are either complete or absent, however the program ends.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// Writes `.<name>.tmp.<host>.<pid>` in the target's folder and renames it to the target, so that a
// reader sees either the old file or the complete new one. The destructor removes the temporary
// file unless it was renamed; RemoveOwnFiles removes it if a signal handler ends the process. Only
// SIGKILL leaves it, see RemoveStrayTemps. Symbolic links are not followed; permissions are 0666
// minus the umask. Only one thread may use an object, and `ops` must outlive it. All members throw
// as ThrowFileError does, and name the target or the temporary file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path, FileOps& ops = FileOps::Posix());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Adds bytes at the end. They are written in pieces of 1 MiB, so a disk error may be thrown only
  // by a later Append or by Finish.
  void Append(const void* data, size_t bytes);

  // Returns the checksum of all bytes that were appended so far.
  uint32_t crc32c() const { return crc_; }
  uint64_t size() const { return size_; }

  const std::string& path() const { return path_; }
  const std::string& temp_path() const { return temp_; }

  // Flushes to the disk, closes, reads the file back and compares length and checksum. Nothing can
  // be appended afterwards. Throws kIo if the disk returns other bytes than were written.
  void Finish();

  // Renames the file to the target. Call it after Finish. The caller syncs the folder.
  void Place();

  // Calls Finish, Place and SyncFolder.
  void Commit();

 private:
  // Writes the buffered bytes to the temporary file, without fsync.
  void Flush();
  // Writes past the buffer, and repeats partial writes. Writing 0 bytes counts as a full disk.
  void WriteAll(const char* data, size_t bytes);
  // Reads the temporary file back, and throws kIo if its length or checksum differs from what was
  // appended.
  void Verify();

  std::string path_, temp_;
  FileOps& ops_;
  int fd_ = -1;
  bool temp_exists_ = false;
  std::string buffer_;
  uint32_t crc_ = 0;
  uint64_t size_ = 0;
};

// Writes `bytes` as the whole of `path`, or leaves `path` as it was. Throws as AtomicFile does.
void WriteWhole(const std::string& path, std::string_view bytes, FileOps& ops = FileOps::Posix());

// Flushes the finished file `temp`, which something else wrote, and renames it to `path` in the
// same folder, so that the change survives a power cut. Throws as AtomicFile does.
void PlaceWhole(const std::string& temp, const std::string& path, FileOps& ops = FileOps::Posix());

// Makes renames and removals in `folder` survive a power cut. Does nothing on network file systems
// that cannot flush a folder, because their renames are synchronous.
void SyncFolder(const std::string& folder, FileOps& ops = FileOps::Posix());

// Returns the hidden name in the same folder under which this process writes `path`.
std::string TempPathFor(const std::string& path);

// Throws kCannotCreate if `path`, or the hidden name that it has while it is written, is longer
// than the folder's file system allows. The check passes if the file system does not tell its
// limit.
void CheckNameLength(const std::string& path);

// Makes the checks of ProbeWritable that write nothing, and throws the same errors: the folder
// exists, this user may write to it, and `needed_bytes` are free.
void CheckWritable(const std::string& prefix, uint64_t needed_bytes,
                   FileOps& ops = FileOps::Posix());

// Checks before the first iteration that snapshots under `prefix` ("folder/name") can be written.
// Throws kCannotCreate if the folder does not exist; kNoPermission or kIo if a test file cannot be
// created, written and flushed; kIo with both figures if less than `needed_bytes` are free. Where
// the file system supports it, the test file is allocated at `needed_bytes`, which reveals a quota;
// the quota error names only the needed bytes.
void ProbeWritable(const std::string& prefix, uint64_t needed_bytes,
                   FileOps& ops = FileOps::Posix());

// Removes the temporary files of `prefix` that a killed run left, and returns how many it removed.
// These are the files that a process of this host made which no longer runs, or which had this
// process's own number; so call it before the first snapshot. Files of other hosts stay. Returns 0
// if the folder cannot be read.
int RemoveStrayTemps(const std::string& prefix, FileOps& ops = FileOps::Posix());

}  // namespace trainer
