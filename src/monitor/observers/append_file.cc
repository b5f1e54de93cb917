#include "append_file.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "trainer/base/file/file.h"
#include "trainer/base/file/output_file.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
AppendFile::AppendFile(std::string path, const Limits& limits, FileOps& ops)
    : path_(std::move(path)), limits_(limits), ops_(ops) {
  RequireOwnFile(path_);
}

AppendFile::~AppendFile() {
  Write();
  if (fd_ >= 0) ops_.Close(fd_);
}

void AppendFile::Add(std::string_view record) {
  if (waiting_.size() + record.size() > limits_.most_kept) {
    ++lost_;
  } else {
    waiting_ += record;
  }
  if (Clock::now() >= next_) Write();
}

void AppendFile::Flush() {
  if (!failing_ || Clock::now() >= next_) Write();
}

std::string AppendFile::Open() {
  if (fd_ >= 0) return "";
  constexpr int kHow = O_WRONLY | O_CREAT | O_APPEND;
  try {
    fd_ = OpenOwnFile(path_, kHow, 0666, ops_);
    if (fd_ < 0 && errno == ENOENT && mkdir(FolderOf(path_).c_str(), 0777) == 0) {
      fd_ = OpenOwnFile(path_, kHow, 0666, ops_);
    }
    return fd_ >= 0 ? "" : std::generic_category().message(errno);
  } catch (const Error& error) {
    return error.what();
  }
}

bool AppendFile::Write() {
  if (waiting_.empty()) return true;
  next_ = Clock::now() + limits_.pause;
  if (const std::string why = Open(); !why.empty()) {
    Failed(why);
    return false;
  }
  size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t wrote = ops_.Write(fd_, waiting_.data() + done, waiting_.size() - done);
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  const int error = done < waiting_.size() ? errno : 0;
  waiting_.erase(0, done);
  if (!waiting_.empty()) {
    Failed(std::generic_category().message(error));
    return false;
  }
  if (failing_) {
    LOG(WARNING) << EscapeControl(Join(path_, " can be written again",
                                       lost_ > 0 ? Join("; ", lost_, " entries are lost") : ""));
    RunFolderIsWritable();
  }
  failing_ = false;
  return true;
}

void AppendFile::Failed(const std::string& why) {
  next_ = Clock::now() + limits_.retry;
  failing_ = true;
  WarnOfRunFolder(Join("cannot write ", AbsolutePath(path_), ": ", why));
}

}  // namespace trainer
