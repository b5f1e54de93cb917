#pragma once
// The errors and warnings that a check collects, for people and for programs.

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/json.h"

namespace trainer {

// One error or warning.
struct Diagnostic {
  bool is_error = true;
  int code = 0;       // the exit code of the error; 0 for a warning
  std::string place;  // "net.prototxt:26:5", or ""
  std::string text;   // the whole message, which starts with `place`
};

// Every member may be called from any thread. A text that is added again is ignored.
class Diagnostics {
 public:
  Diagnostics() = default;
  // No other thread may use `other` any more.
  Diagnostics(Diagnostics&& other) noexcept
      : diagnostics_(std::move(other.diagnostics_)), texts_(std::move(other.texts_)) {}

  // Adds an error with its exit code, and the beginning of its message as the place if that looks
  // like a path.
  void Add(const Error& error);
  void Add(const ErrorList& errors);
  void Warn(const std::string& text);

  // Runs `step` and adds the errors that it throws. Returns whether it threw none.
  template <class Step>
  bool Collect(Step&& step) {
    ErrorCollector errors;
    const bool good = errors.Try(std::forward<Step>(step));
    Add(errors.errors());
    return good;
  }

  // Returns the number of errors.
  size_t Errors() const;
  size_t Warnings() const;
  // Returns the exit code of the first error, or 0.
  int ExitCode() const;
  std::vector<std::string> WarningTexts() const;
  // Returns "3 errors, 1 warning".
  std::string Counts() const;

  // Returns a line "error: text" for each error, then one for each warning; in colours if the
  // standard output is a terminal.
  std::string ToText() const;
  // Returns a list of objects in the order of ToText; "message" is the text without the place.
  Json ToJson() const;

 private:
  // Adds a diagnostic, unless one with the same text was added already.
  void Keep(Diagnostic diagnostic);
  // Returns the errors, then the warnings, each in the order in which they were added.
  std::vector<Diagnostic> Sorted() const;

  mutable std::mutex mutex_;
  std::vector<Diagnostic> diagnostics_;
  std::set<std::string> texts_;
};

}  // namespace trainer
