#include "trainer/base/file/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// A file without a name on any disk. The system removes it with the process.
class MemoryFile {
 public:
  MemoryFile(const std::string& path, std::string_view content)
      : fd_(memfd_create("trainer", MFD_CLOEXEC)), system_path_(Join("/proc/self/fd/", fd_)) {
    while (fd_ >= 0 && !content.empty()) {
      const ssize_t written = write(fd_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      content.remove_prefix(static_cast<size_t>(written));
    }
    if (fd_ >= 0 && content.empty()) return;
    const int error = errno;
    if (fd_ >= 0) close(fd_);
    throw Error(ErrorCode::kResource, {path},
                Join("no memory for the file: ", std::strerror(error)));
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }

  const std::string& system_path() const { return system_path_; }

 private:
  int fd_;
  std::string system_path_;
};

std::map<std::string, MemoryFile>& MemoryFiles() {
  static std::map<std::string, MemoryFile> files;
  return files;
}

}  // namespace

void AddMemoryFile(const std::string& path, std::string_view content) {
  MemoryFiles().erase(path);
  MemoryFiles().try_emplace(path, path, content);
}

bool IsMemoryFile(const std::string& path) { return MemoryFiles().contains(path); }

const std::string& SystemPath(const std::string& path) {
  if (MemoryFiles().empty()) return path;
  const auto found = MemoryFiles().find(path);
  return found == MemoryFiles().end() ? path : found->second.system_path();
}

}  // namespace trainer
