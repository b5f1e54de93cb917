#pragma once
// Output files that are either whole or not there, whatever stops the program.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// Writes `.<name>.tmp.<host>.<pid>` in the target's folder and puts it in place with a rename, so
// that a reader sees the old file or the whole new one. Unless it was put in place, the temporary
// file is removed by the destructor, or by RemoveOwnFiles where a handler ends the process; only a
// kill leaves it, see RemoveStrayTemps. Symbolic links are not followed; permissions are 0666 less
// the umask. One thread. The FileOps must outlive it. Errors of all members: as ThrowFileError,
// naming the target or the temporary file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path, FileOps& ops = FileOps::Posix());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Append(const void* data, size_t bytes);

  // Of all bytes appended so far.
  uint32_t crc32c() const { return crc_; }
  uint64_t size() const { return size_; }

  const std::string& path() const { return path_; }
  const std::string& temp_path() const { return temp_; }

  // Flushes to the disk, closes, reads the file back and compares length and checksum. Nothing can
  // be appended afterwards. kIo when the disk gives back other bytes than were written.
  void Finish();

  // After Finish: renames to the target. The caller syncs the folder.
  void Place();

  // Finish, Place and SyncFolder.
  void Commit();

 private:
  void Flush();
  void WriteAll(const char* data, size_t bytes);
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

// Puts the finished file `temp`, which something else wrote, in the place of `path` in the same
// folder: flushed, renamed and permanent. Throws as AtomicFile does.
void PlaceWhole(const std::string& temp, const std::string& path, FileOps& ops = FileOps::Posix());

// Makes renames and removals in `folder` survive a power cut.
void SyncFolder(const std::string& folder, FileOps& ops = FileOps::Posix());

// The hidden name in the same folder that this process uses before `path` is put in place.
std::string TempPathFor(const std::string& path);

// Throws kCannotCreate when `path`, or the hidden name that it has while it is written, is longer
// than the folder's file system takes. A folder that cannot be asked takes any.
void CheckNameLength(const std::string& path);

// What ProbeWritable can tell without writing: the folder, its rights, the free space.
void CheckWritable(const std::string& prefix, uint64_t needed_bytes,
                   FileOps& ops = FileOps::Posix());

// Checks before the first iteration that snapshots under `prefix` ("folder/name") will be writable:
// the folder exists (else kCannotCreate), a test file can be made, written and flushed (else
// kNoPermission or kIo), and at least `needed_bytes` are free, also by the quota where the file
// system can tell (else kIo with both figures).
void ProbeWritable(const std::string& prefix, uint64_t needed_bytes,
                   FileOps& ops = FileOps::Posix());

// Removes the temporary files of `prefix` that a killed run left: those made on this host by a
// process that no longer runs, or under this process's own number, so call it before the first
// snapshot. Other hosts' files stay. Returns how many went; a folder that cannot be read gives 0.
int RemoveStrayTemps(const std::string& prefix, FileOps& ops = FileOps::Posix());

}  // namespace trainer
