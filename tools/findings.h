#pragma once
// What a check found: errors and warnings, for readers and for programs.

#include <glog/logging.h>

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flags.h"
#include "trainer/base/error/error_group.h"
#include "trainer/base/text/json.h"

namespace trainer {

struct Finding {
  bool is_error = true;
  int code = 0;       // the exit code that it stands for; 0 for a warning
  std::string place;  // "net.prototxt:26:5", "" where there is none
  std::string text;   // the whole message, the place in front
};

// Members may be called from any thread. The same text counts once.
class Findings {
 public:
  void Add(const Error& error);
  void Add(const ErrorList& errors);
  void Warn(const std::string& text);

  // Runs `step`; what it throws is a finding. Returns whether it threw nothing.
  template <class Step>
  bool Try(Step&& step) {
    ErrorList errors;
    const bool good = AttemptAll(&errors, std::forward<Step>(step));
    Add(errors);
    return good;
  }

  size_t Errors() const;
  size_t Warnings() const;
  // That of the first error, or 0.
  int ExitCode() const;
  std::vector<std::string> WarningTexts() const;
  // "3 errors, 1 warning"
  std::string Counts() const;

  // Prints errors first, each as a line "error: text", then warnings, on the standard output.
  void Print() const;
  Json ToJson() const;

 private:
  void Keep(Finding finding);
  std::vector<Finding> Sorted() const;

  mutable std::mutex mutex_;
  std::vector<Finding> findings_;
  std::set<std::string> texts_;
};

// While it lives, the log does not go to the terminal, unless --alsologtostderr asks for it, and
// its warnings are findings.
class FindingsLog : public google::LogSink {
 public:
  FindingsLog(const Flags& flags, Findings* findings);
  ~FindingsLog() override;
  FindingsLog(const FindingsLog&) = delete;
  FindingsLog& operator=(const FindingsLog&) = delete;

  void send(google::LogSeverity severity, const char* path, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override;

 private:
  Findings& findings_;
};

}  // namespace trainer
