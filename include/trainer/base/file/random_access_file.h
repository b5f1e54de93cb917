#pragma once
// A file that is read at any offset.

#include <cstdint>
#include <string>

#include "trainer/base/file/file.h"

namespace trainer {

// Const members may be called from any thread.
class RandomAccessFile {
 public:
  // Throws as OpenForReading does.
  explicit RandomAccessFile(const std::string& path, FileOps& ops = FileOps::Posix());

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }  // when it was opened
  int fd() const { return file_.get(); }

  // Reads `count` bytes from `offset` on, or as many as there are before the end of the file, and
  // returns their number. Throws as ThrowFileError does.
  uint64_t Read(uint64_t offset, uint64_t count, void* to) const;

 private:
  std::string path_;
  FileOps& ops_;
  FileHandle file_;
  uint64_t bytes_ = 0;
};

}  // namespace trainer
