#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// A file of records that grows during a run. A failed write never stops the run: the records are
// kept and written later, in order and without a gap. If more than `most_kept` bytes wait, further
// records are lost. The first failure is logged as a warning, and the number of lost records when
// the file can be written again. Used by one thread.
class AppendFile {
 public:
  // How often to write, and how much to keep in memory if that fails.
  struct Limits {
    std::chrono::milliseconds pause = std::chrono::seconds(1);   // between writes
    std::chrono::milliseconds retry = std::chrono::seconds(10);  // after one that failed
    size_t most_kept = 4 << 20;                                  // bytes
  };

  // Appends to `path`; the last folder of it is made if it is missing. Throws as RequireOwnFile
  // does, but later failures of any kind, such as another file in its place, never throw.
  explicit AppendFile(std::string path) : AppendFile(std::move(path), Limits(), FileOps::Posix()) {}
  AppendFile(std::string path, const Limits& limits, FileOps& ops);
  // Tries once more to write what waits; what cannot be written is lost.
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Appends a record. It is written at once, with the records that wait, unless the last write was
  // within Limits::pause, or within Limits::retry if it failed; then a later call writes it.
  void Add(std::string_view record);
  // Writes the records that wait, unless a write failed within Limits::retry.
  void Flush();

  const std::string& path() const { return path_; }
  // Returns the number of bytes that are not in the file yet.
  size_t waiting() const { return waiting_.size(); }
  // Returns the number of records that never will be in the file.
  int lost() const { return lost_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Writes the records that wait. Returns whether all of them are in the file now.
  bool Write();
  // Opens the file if it is not open. Returns the reason if that fails, else "".
  std::string Open();
  // Warns, and puts off the next attempt by Limits::retry.
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
