#include "trainer/run/preflight/diagnostics.h"

#include <unistd.h>

#include <algorithm>

#include "trainer/base/file/file.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the part of a message before the first ": " if it looks like a path, or "".
std::string PlaceOfMessage(const std::string& text) {
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

void Diagnostics::Add(const Error& error) {
  Keep({true, static_cast<int>(error.code()), PlaceOfMessage(error.what()), error.what()});
}

void Diagnostics::Add(const ErrorList& errors) {
  for (const Error& error : errors) Add(error);
}

void Diagnostics::Warn(const std::string& text) { Keep({false, 0, PlaceOfMessage(text), text}); }

void Diagnostics::Keep(Diagnostic diagnostic) {
  const std::lock_guard lock(mutex_);
  if (texts_.insert(diagnostic.text).second) diagnostics_.push_back(std::move(diagnostic));
}

size_t Diagnostics::Errors() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(diagnostics_, true, &Diagnostic::is_error));
}

size_t Diagnostics::Warnings() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(diagnostics_, false, &Diagnostic::is_error));
}

int Diagnostics::ExitCode() const {
  const std::vector<Diagnostic> sorted = Sorted();
  return sorted.empty() ? 0 : sorted[0].code;
}

std::vector<std::string> Diagnostics::WarningTexts() const {
  std::vector<std::string> texts;
  for (const Diagnostic& diagnostic : Sorted()) {
    if (!diagnostic.is_error) texts.push_back(diagnostic.text);
  }
  return texts;
}

std::string Diagnostics::Counts() const {
  const size_t errors = Errors(), warnings = Warnings();
  return Join(errors, errors == 1 ? " error, " : " errors, ", warnings,
              warnings == 1 ? " warning" : " warnings");
}

std::vector<Diagnostic> Diagnostics::Sorted() const {
  const std::lock_guard lock(mutex_);
  std::vector<Diagnostic> sorted = diagnostics_;
  std::ranges::stable_partition(sorted,
                                [](const Diagnostic& diagnostic) { return diagnostic.is_error; });
  return sorted;
}

std::string Diagnostics::ToText() const {
  const std::string error = Painted(Color::kRed, "error:", STDOUT_FILENO),
                    warning = Painted(Color::kYellow, "warning:", STDOUT_FILENO);
  std::string text;
  for (const Diagnostic& diagnostic : Sorted()) {
    text += Join(diagnostic.is_error ? error : warning, " ", diagnostic.text, "\n");
  }
  return text;
}

Json Diagnostics::ToJson() const {
  Json list = Json::Array();
  for (const Diagnostic& diagnostic : Sorted()) {
    const std::string message = diagnostic.place.empty()
                                    ? diagnostic.text
                                    : diagnostic.text.substr(diagnostic.place.size() + 2);
    list.Push(Json::Object()
                  .Set("severity", diagnostic.is_error ? "error" : "warning")
                  .Set("exit_code", diagnostic.code)
                  .Set("place", diagnostic.place)
                  .Set("message", message));
  }
  return list;
}

}  // namespace trainer
