#include "findings.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "trainer/base/file/file.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The place in front of a message: what stands before the first ": " and looks like a path.
std::string PlaceOf(const std::string& text) {
  const size_t end = text.find(": ");
  if (end == std::string::npos || text.starts_with('-')) return "";
  const std::string head = text.substr(0, end);
  std::string path = head;  // without line and column
  for (int i = 0; i < 2; ++i) {
    const size_t colon = path.rfind(':');
    const bool number = colon != std::string::npos && colon + 1 < path.size() &&
                        path.find_first_not_of("0123456789", colon + 1) == std::string::npos;
    if (number) path.resize(colon);
  }
  const bool plain = path.find_first_of(" '\n") == std::string::npos;
  const bool like_path = plain && path.find_first_of("./") != std::string::npos;
  return like_path || Exists(path) ? head : "";
}

}  // namespace

void Findings::Add(const Error& error) {
  Keep({true, static_cast<int>(error.code()), PlaceOf(error.what()), error.what()});
}

void Findings::Add(const ErrorList& errors) {
  for (const Error& error : errors) Add(error);
}

void Findings::Warn(const std::string& text) { Keep({false, 0, PlaceOf(text), text}); }

void Findings::Keep(Finding finding) {
  const std::lock_guard lock(mutex_);
  if (texts_.insert(finding.text).second) findings_.push_back(std::move(finding));
}

size_t Findings::Errors() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(findings_, true, &Finding::is_error));
}

size_t Findings::Warnings() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(findings_, false, &Finding::is_error));
}

int Findings::ExitCode() const {
  const std::vector<Finding> sorted = Sorted();
  return sorted.empty() ? 0 : sorted[0].code;
}

std::vector<std::string> Findings::WarningTexts() const {
  std::vector<std::string> texts;
  for (const Finding& finding : Sorted()) {
    if (!finding.is_error) texts.push_back(finding.text);
  }
  return texts;
}

std::string Findings::Counts() const {
  const size_t errors = Errors(), warnings = Warnings();
  return Join(errors, errors == 1 ? " error, " : " errors, ", warnings,
              warnings == 1 ? " warning" : " warnings");
}

std::vector<Finding> Findings::Sorted() const {
  const std::lock_guard lock(mutex_);
  std::vector<Finding> sorted = findings_;
  std::ranges::stable_partition(sorted, [](const Finding& finding) { return finding.is_error; });
  return sorted;
}

void Findings::Print() const {
  const std::string error = Painted(Color::kRed, "error:", STDOUT_FILENO),
                    warning = Painted(Color::kYellow, "warning:", STDOUT_FILENO);
  for (const Finding& finding : Sorted()) {
    std::cout << (finding.is_error ? error : warning) << " " << finding.text << "\n";
  }
}

Json Findings::ToJson() const {
  Json list = Json::Array();
  for (const Finding& finding : Sorted()) {
    const std::string message =
        finding.place.empty() ? finding.text : finding.text.substr(finding.place.size() + 2);
    list.Push(Json::Object()
                  .Set("severity", finding.is_error ? "error" : "warning")
                  .Set("exit_code", finding.code)
                  .Set("place", finding.place)
                  .Set("message", message));
  }
  return list;
}

FindingsLog::FindingsLog(const Flags& flags, Findings* findings) : findings_(*findings) {
  FLAGS_logtostderr = false;
  FLAGS_alsologtostderr = flags.Switch("alsologtostderr") || flags.Switch("logtostderr");
  FLAGS_stderrthreshold = google::NUM_SEVERITIES;
  if (FLAGS_log_dir.empty()) {
    for (int severity = google::INFO; severity < google::NUM_SEVERITIES; ++severity) {
      google::SetLogDestination(severity, "");
    }
  }
  google::AddLogSink(this);
}

FindingsLog::~FindingsLog() { google::RemoveLogSink(this); }

void FindingsLog::send(google::LogSeverity severity, const char*, const char*, int,
                       const google::LogMessageTime&, const char* message, size_t length) {
  if (severity == google::WARNING) findings_.Warn(EscapeControl({message, length}));
}

}  // namespace trainer
