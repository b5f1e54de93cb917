#pragma once
// glog set up for a batch job: LOG lines go to stderr with Caffe's "Immdd hh:mm:ss" prefix.

#include <string>

namespace trainer {

// Call once from main(), after the flags are parsed; a second call changes nothing. The year in the
// prefix is off, which readers of Caffe's log rely on; warnings and errors have colours where
// UsesColor(STDERR_FILENO) is true. No log file is written unless GLOG_log_dir (or the flag
// log_dir) names a folder; then the lines go to both. The other GLOG_... variables
// (GLOG_minloglevel, GLOG_v, ...) keep their meaning. Throws kCannotCreate, kNoPermission or kIo
// for a folder in which no file can be made. A log that cannot be written later (disk full, closed
// pipe) ends nothing: it is said once, where lines still go. SIGPIPE and SIGXFSZ are ignored from
// here on: a closed terminal or a file-size limit then fails one write, which is handled or
// harmless, instead of ending the run.
void InitLogging(const std::string& program);

// From here on the log takes warnings and errors alone (GLOG_minloglevel may ask for less still).
// All ranks but 0 call it, because they would repeat the lines of rank 0.
void LogWarningsOnly();

// Call it after LogWarningsOnly: all lines go to the end of this file, and warnings and errors to
// stderr as well.
// Throws kCannotCreate, kNoPermission or kIo where it cannot be opened.
void LogToFile(const std::string& path);

// From here on all lines also go to the end of this file, until the process ends. "" or why it
// cannot be opened. A line that it does not take later is a warning, once.
std::string AlsoLogToFile(const std::string& path);

// Whether the log has Caffe's lines about each layer of a net, all fields of the solver and each
// epoch of a data set, of which no program that reads logs of training asks for: with --v=1, and
// from LogDetails(true) on.
bool LogsDetails();
void LogDetails(bool details);

// While an object lives, the log has warnings and errors alone, unless LogsDetails: for nets that
// are only planned, or built again and again. Use it from one thread.
class WarningsOnly {
 public:
  WarningsOnly();
  ~WarningsOnly();
  WarningsOnly(const WarningsOnly&) = delete;
  WarningsOnly& operator=(const WarningsOnly&) = delete;

 private:
  int level_before_;
};

// Lines no longer go to stderr, since somebody else shows there what matters; errors that end the
// process still do. ShowLog undoes it: the same lines as before go there.
void HideLog();
void ShowLog();

}  // namespace trainer
