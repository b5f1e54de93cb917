#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace trainer {

// During its lifetime, files of this process cannot grow beyond `bytes`: writing fails as on a full
// disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_action_(std::signal(SIGXFSZ, SIG_IGN)) {
    rlimit limit;
    bool ok = getrlimit(RLIMIT_FSIZE, &old_limit_) == 0;
    limit = old_limit_;
    limit.rlim_cur = bytes;
    ok = ok && setrlimit(RLIMIT_FSIZE, &limit) == 0;
    if (!ok) throw std::system_error(errno, std::generic_category(), "RLIMIT_FSIZE");
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_action_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*old_action_)(int);
  rlimit old_limit_;
};

}  // namespace trainer
