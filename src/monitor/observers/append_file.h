#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// A file of records that grows during a run. A failed write never stops the run: the records are
// kept and written later, in order and without a gap. The first failure is logged as a warning, and
// so is the loss of records if more than `most_kept` bytes wait. Used by one thread.
class AppendFile {
 public:
  struct Limits {
    std::chrono::milliseconds pause = std::chrono::seconds(1);   // between writes
    std::chrono::milliseconds retry = std::chrono::seconds(10);  // after one that failed
    size_t most_kept = 4 << 20;                                  // bytes
  };

  // Writes to the end of `path`, whose folder is made when it is missing. Throws as RequireOwnFile
  // does; what takes its place later is a failure as any other.
  explicit AppendFile(std::string path) : AppendFile(std::move(path), Limits(), FileOps::Posix()) {}
  AppendFile(std::string path, const Limits& limits, FileOps& ops);
  // Writes what it can.
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Takes a record, which reaches the file at once or within Limits::pause of another one.
  void Add(std::string_view record);
  // Writes what waits, unless a write failed just now.
  void Flush();

  const std::string& path() const { return path_; }
  // Bytes that are not in the file yet; records that never will be.
  size_t waiting() const { return waiting_.size(); }
  int lost() const { return lost_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool Write();
  std::string Open();
  void Failed(const std::string& why);

  std::string path_;
  Limits limits_;
  FileOps& ops_;
  int fd_ = -1;
  std::string waiting_;
  int lost_ = 0;
  bool failing_ = false;
  Clock::time_point next_ = {};  // before which nothing is written
};

}  // namespace trainer
