#pragma once
// A file that is read at any place and outlives an outage of its server.

#include <cstdint>
#include <ctime>
#include <string>

#include "trainer/base/file.h"
#include "trainer/base/io_wait.h"

namespace trainer {

// The calls of FileOps and the one that reads at a place, as a seam for tests.
class PlaceOps : public FileOps {
 public:
  // As pread, retried when a signal interrupts it.
  virtual ssize_t ReadAt(int fd, void* to, size_t bytes, uint64_t at);

  static PlaceOps& Posix();
};

// Size and time of the last change: whether a file that was opened again is the same one.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t seconds = 0, nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;
};

// Throws as ThrowFileError does.
FileStamp StampOf(int fd, const std::string& path);

// Const members may be called from any thread.
class SteadyFile {
 public:
  // Throws as OpenForReading does.
  explicit SteadyFile(const std::string& path, PlaceOps& ops = PlaceOps::Posix());

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return stamp_.bytes; }
  int fd() const { return file_.get(); }

  // Reads what the file holds of `count` bytes from `at` on; returns how many these are. A read
  // that fails is tried again as ReadPatiently does, by a new handle, since that of a server that
  // came back may be stale. Throws kIo; kData when another file has come in its place.
  uint64_t Read(uint64_t at, uint64_t count, void* to) const;

 private:
  void Reopen() const;

  std::string path_;
  PlaceOps& ops_;
  FileHandle file_;  // its number stays, whatever file is behind it
  FileStamp stamp_;
};

}  // namespace trainer
