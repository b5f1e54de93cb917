#include "trainer/base/log/log.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <system_error>

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/base/file/output_file.h"
#include "trainer/base/log/terminal.h"

namespace trainer {
namespace {

// Throws, as InitLogging says, if no file can be created in `folder`. This check runs before the
// first line, because glog itself only complains and continues without the file.
void CheckLogFolder(const std::string& folder) {
  const std::string place = AbsolutePath(folder);
  if (!IsDirectory(folder)) {
    throw Error(ErrorCode::kCannotCreate, {place},
                Exists(folder)
                    ? "this is not a folder, so no log can be written there (--log_dir)"
                    : "the folder for the log (--log_dir) does not exist; create it (mkdir -p)");
  }
  FileOps& ops = FileOps::Posix();
  const std::string probe = TempPathFor(JoinPath(folder, "log.probe"));
  const int fd = OpenOwnFile(probe, O_WRONLY | O_CREAT | O_TRUNC);
  if (fd < 0) ThrowFileError(FileUse::kOutput, "write a log here (--log_dir)", place, errno);
  ops.Close(fd);
  ops.Unlink(probe);
}

// Returns whether an errno says that a file cannot be written. Other values may be left over from
// calls in which glog handles failures itself.
bool IsOfDisk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO || error == EROFS ||
         error == ESTALE;
}

// Wraps glog's own file of one severity. glog hides write errors, but errno still shows them after
// a flush.
class WatchedLog final : public google::base::Logger {
 public:
  explicit WatchedLog(google::base::Logger* file) : file_(file) {}

  // Writes and flushes a line, and warns once on stderr if the disk refuses it. Keeps errno, which
  // the code that logs may still need.
  void Write(bool force_flush, time_t time, const char* message, size_t length) override {
    const int before = errno;
    errno = 0;
    file_->Write(force_flush, time, message, length);
    file_->Flush();
    if (IsOfDisk(errno) && !told_.exchange(true)) {
      std::fprintf(stderr,
                   "warning: the log in %s cannot be written: %s; the run continues, and all lines "
                   "go to this terminal\n",
                   FLAGS_log_dir.c_str(), std::generic_category().message(errno).c_str());
    }
    errno = before;
  }
  void Flush() override { file_->Flush(); }
  google::uint32 LogSize() override { return file_->LogSize(); }

 private:
  google::base::Logger* file_;
  static inline std::atomic<bool> told_{false};  // shared by all severities
};

// Detects that stderr accepts no more lines, because its disk is full or its reader has ended, and
// reports it in the logs that still accept lines.
class StderrWatch final : public google::LogSink {
 public:
  explicit StderrWatch(google::base::Logger* file) : file_(file) {}

  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char*, size_t) override {
    if (std::ferror(stderr) == 0 || told_.exchange(true)) return;
    constexpr std::string_view kText =
        "warning: the log cannot be written to stderr (the disk is full, or its reader has ended); "
        "the run continues without these lines\n";
    if (file_ != nullptr) {
      file_->Write(true, std::time(nullptr), kText.data(), kText.size());
      return;
    }
    const int before = errno;
    [[maybe_unused]] const ssize_t wrote = write(STDOUT_FILENO, kText.data(), kText.size());
    errno = before;
  }

 private:
  google::base::Logger* file_;  // null without a log file
  std::atomic<bool> told_{false};
};

// Appends all lines of a process to a file.
class FileSink final : public google::LogSink {
 public:
  FileSink(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  void send(google::LogSeverity severity, const char*, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override {
    const int before = errno;
    std::string text = ToString(severity, file, line, time, message, length) + "\n";
    // glog 0.6 writes the year here whatever FLAGS_log_year_in_prefix says. Caffe's parse_log.py
    // would take it for month and day.
    const std::string year = std::to_string(1900 + time.year());
    if (text.compare(1, year.size(), year) == 0) text.erase(1, year.size());
    const ssize_t wrote = FileOps::Posix().Write(fd_, text.data(), text.size());
    if (wrote != static_cast<ssize_t>(text.size()) && !told_.exchange(true)) {
      std::fprintf(stderr, "warning: the log %s cannot be written: %s; the run continues\n",
                   path_.c_str(), std::generic_category().message(errno).c_str());
    }
    errno = before;
  }

 private:
  int fd_;
  std::string path_;
  std::atomic<bool> told_{false};
};

std::atomic<bool> g_details{false};

// The settings of stderr that ShowLog restores after HideLog.
struct ShownLines {
  bool only_stderr = false, also_stderr = true;
  int least_severity = google::INFO;
};
ShownLines g_shown_before;

// The user's level, which applied before LogWarningsOnly.
int g_min_level = google::INFO;

// Sends lines of this severity and above to stderr, and no others. Files in --log_dir still get
// all.
void LogToStderrFrom(int severity) {
  if (FLAGS_log_dir.empty()) {  // otherwise glog would choose a folder for files of its own
    for (int file = 0; file < google::NUM_SEVERITIES; ++file) google::SetLogDestination(file, "");
  }
  FLAGS_logtostderr = false;
  FLAGS_alsologtostderr = false;
  FLAGS_stderrthreshold = severity;
}

// Makes write errors visible: wraps glog's files in WatchedLog and adds a StderrWatch. Loggers and
// sinks belong to glog, which uses them until the process ends.
void WatchWrites() {
  google::base::Logger* info = nullptr;
  if (!FLAGS_log_dir.empty()) {
    for (int severity = google::NUM_SEVERITIES; severity-- > google::INFO;) {
      info = new WatchedLog(google::base::GetLogger(severity));
      google::base::SetLogger(severity, info);
    }
  }
  google::AddLogSink(new StderrWatch(info));
}

}  // namespace

void InitLogging(const std::string& program) {
  if (google::IsGoogleLoggingInitialized()) return;
  static const std::string name = program;  // glog keeps the pointer
  if (!FLAGS_log_dir.empty()) CheckLogFolder(FLAGS_log_dir);
  FLAGS_logtostderr = FLAGS_log_dir.empty();
  FLAGS_alsologtostderr = true;
  FLAGS_stderrthreshold = google::INFO;
  FLAGS_log_prefix = true;
  FLAGS_log_year_in_prefix = false;
  FLAGS_colorlogtostderr = UsesColor(STDERR_FILENO);
  google::InitGoogleLogging(name.c_str());
  WatchWrites();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void LogWarningsOnly() {
  g_min_level = FLAGS_minloglevel;
  FLAGS_minloglevel = std::max<int>(FLAGS_minloglevel, google::WARNING);
}

WarningsOnly::WarningsOnly() : level_before_(FLAGS_minloglevel) {
  if (!LogsDetails()) FLAGS_minloglevel = std::max<int>(level_before_, google::WARNING);
}
WarningsOnly::~WarningsOnly() { FLAGS_minloglevel = level_before_; }

NoLog::NoLog() : level_before_(FLAGS_minloglevel) { FLAGS_minloglevel = google::FATAL; }
NoLog::~NoLog() { FLAGS_minloglevel = level_before_; }

void LogToFile(const std::string& path) {
  const int fd = OpenOwnFile(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) ThrowFileError(FileUse::kOutput, "write a log", path, errno);
  google::AddLogSink(new FileSink(fd, path));
  LogToStderrFrom(google::WARNING);
  FLAGS_minloglevel = g_min_level;
}

std::string AlsoLogToFile(const std::string& path) {
  const int fd = OpenOwnFile(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) return std::generic_category().message(errno);
  google::AddLogSink(new FileSink(fd, path));
  return "";
}

bool LogsDetails() { return FLAGS_v > 0 || g_details; }
void LogDetails(bool details) { g_details = details; }

void HideLog() {
  g_shown_before = {FLAGS_logtostderr, FLAGS_alsologtostderr, FLAGS_stderrthreshold};
  LogToStderrFrom(google::NUM_SEVERITIES);
}

void ShowLog() {
  FLAGS_logtostderr = g_shown_before.only_stderr;
  FLAGS_alsologtostderr = g_shown_before.also_stderr;
  FLAGS_stderrthreshold = g_shown_before.least_severity;
}

}  // namespace trainer
