#include "trainer/base/file/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

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

// The files by their paths. One thread may load a model while another one reads files.
struct MemoryFiles {
  static MemoryFiles& Get() {
    static MemoryFiles files;
    return files;
  }

  std::mutex mutex;
  std::map<std::string, MemoryFile> by_path;
};

}  // namespace

void AddMemoryFile(const std::string& path, std::string_view content) {
  MemoryFiles& files = MemoryFiles::Get();
  const std::lock_guard lock(files.mutex);
  files.by_path.erase(path);
  files.by_path.try_emplace(path, path, content);
}

bool IsMemoryFile(const std::string& path) {
  MemoryFiles& files = MemoryFiles::Get();
  const std::lock_guard lock(files.mutex);
  return files.by_path.contains(path);
}

std::string SystemPath(const std::string& path) {
  MemoryFiles& files = MemoryFiles::Get();
  const std::lock_guard lock(files.mutex);
  const auto found = files.by_path.find(path);
  return found == files.by_path.end() ? path : found->second.system_path();
}

MemoryFilesScope::~MemoryFilesScope() {
  MemoryFiles& files = MemoryFiles::Get();
  const std::lock_guard lock(files.mutex);
  files.by_path.clear();
}

}  // namespace trainer
