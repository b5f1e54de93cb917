#pragma once
// FileOps whose n-th call fails, for loops over every point of failure.

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// Counts the calls of all kinds together. Call number `fail_at` (from 0), and with `and_after` also
// every later one, does nothing and sets `errno_value`. With `write_half`, a failing write first
// writes half. With `die`, the process is killed before the call instead.
class FaultyOps : public FileOps {
 public:
  int fail_at = -1;
  bool and_after = false;
  int errno_value = EIO;
  bool write_half = false;
  bool die = false;
  int calls = 0;
  std::string failed_call;         // the name of the first call that failed
  std::vector<std::string> names;  // of all calls; equal ones in a row count once

  int Open(const std::string& path, int flags, mode_t mode) override {
    return Fails("open") ? -1 : FileOps::Open(path, flags, mode);
  }
  ssize_t Read(int fd, void* to, size_t bytes) override {
    return Fails("read") ? -1 : FileOps::Read(fd, to, bytes);
  }
  ssize_t Write(int fd, const void* from, size_t bytes) override {
    if (!Fails("write")) return FileOps::Write(fd, from, bytes);
    if (write_half) FileOps::Write(fd, from, bytes / 2);
    errno = errno_value;
    return -1;
  }
  int Fsync(int fd) override { return Fails("fsync") ? -1 : FileOps::Fsync(fd); }
  int Close(int fd) override {  // the descriptor is gone even when close() reports an error
    const bool fails = Fails("close");
    const int result = FileOps::Close(fd);
    if (fails) errno = errno_value;
    return fails ? -1 : result;
  }
  int Rename(const std::string& from, const std::string& to) override {
    return Fails("rename") ? -1 : FileOps::Rename(from, to);
  }
  int Link(const std::string& from, const std::string& to) override {
    return Fails("link") ? -1 : FileOps::Link(from, to);
  }
  int Symlink(const std::string& target, const std::string& path) override {
    return Fails("symlink") ? -1 : FileOps::Symlink(target, path);
  }
  int Unlink(const std::string& path) override {
    return Fails("unlink") ? -1 : FileOps::Unlink(path);
  }
  int Allocate(int fd, uint64_t bytes) override {
    return Fails("allocate") ? -1 : FileOps::Allocate(fd, bytes);
  }
  int FreeBytes(const std::string& folder, uint64_t* bytes) override {
    return Fails("statvfs") ? -1 : FileOps::FreeBytes(folder, bytes);
  }

 private:
  bool Fails(const char* call) {
    const int now = calls++;
    if (names.empty() || names.back() != call) names.push_back(call);
    const bool fails = fail_at >= 0 && (and_after ? now >= fail_at : now == fail_at);
    if (fails && die) raise(SIGKILL);
    if (fails && failed_call.empty()) failed_call = call;
    if (fails) errno = errno_value;
    return fails;
  }
};

}  // namespace trainer
