#pragma once
// glog set up for a batch job: LOG lines go to stderr with Caffe's "Immdd hh:mm:ss" prefix.

#include <string>

namespace trainer {

// Sets up glog. Call it once from main(), after the flags are parsed; a second call changes
// nothing. The year in the prefix is off, which readers of Caffe's log rely on; warnings and errors
// have colours where UsesColor(STDERR_FILENO) is true. No log file is written unless GLOG_log_dir
// (or the flag log_dir) names a folder; then the lines go to both. The other GLOG_... variables
// (GLOG_minloglevel, GLOG_v, ...) keep their meaning. Throws kCannotCreate, kNoPermission or kIo
// for a folder in which no file can be made. If the log cannot be written later (disk full, closed
// pipe), the run continues, and one warning appears where lines still go. SIGPIPE and SIGXFSZ are
// ignored from here on: a closed terminal or a file-size limit then fails one write, which is
// handled or harmless, instead of ending the run.
void InitLogging(const std::string& program);

// Limits the log to warnings and errors from now on (GLOG_minloglevel may allow fewer still). All
// ranks but 0 call it, because they would repeat the lines of rank 0.
void LogWarningsOnly();

// Sends all lines to the end of this file, and warnings and errors also to stderr. Call it after
// LogWarningsOnly. Throws kCannotCreate, kNoPermission or kIo if the file cannot be opened.
void LogToFile(const std::string& path);

// Sends all lines also to the end of this file, from now on until the process ends. Returns "", or
// the reason why the file cannot be opened. If writing a line fails later, one warning is logged.
std::string AlsoLogToFile(const std::string& path);

// Returns whether the log has Caffe's lines about each layer of a net, all fields of the solver and
// each epoch of a data set. They are logged with --v=1 and after LogDetails(true); programs that
// read training logs do not need them.
bool LogsDetails();
// Sets whether LogsDetails is true also without --v=1.
void LogDetails(bool details);

// While an object exists, the log has only warnings and errors, unless LogsDetails(). Use it, on
// one thread, for nets that are only planned, or built repeatedly.
class WarningsOnly {
 public:
  WarningsOnly();
  ~WarningsOnly();
  WarningsOnly(const WarningsOnly&) = delete;
  WarningsOnly& operator=(const WarningsOnly&) = delete;

 private:
  int level_before_;
};

// While an object exists, the log has no lines. Use it for code that runs inside another program,
// on one thread at a time.
class NoLog {
 public:
  NoLog();
  ~NoLog();
  NoLog(const NoLog&) = delete;
  NoLog& operator=(const NoLog&) = delete;

 private:
  int level_before_;
};

// Stops sending lines to stderr, because another component shows the important ones there; errors
// that end the process still go there.
void HideLog();
// Restores the lines that went to stderr before HideLog.
void ShowLog();

}  // namespace trainer
