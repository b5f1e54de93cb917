#include "trainer/base/error/error.h"

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Escapes control characters, but keeps a newline that two blanks follow, because it begins a
// quoted line of the user's file. Any other newline belongs to a name and is escaped too.
std::string EscapeMessage(std::string_view message) {
  std::string out;
  for (;;) {
    const size_t quote = message.find("\n  ");
    out += EscapeControl(message.substr(0, quote));
    if (quote == std::string_view::npos) return out;
    out += '\n';
    message.remove_prefix(quote + 1);
  }
}

}  // namespace

std::string SourceRef::ToString() const {
  if (file.empty()) return "";
  std::string text = file;
  if (line > 0) text += Join(":", line);
  if (line > 0 && column > 0) text += Join(":", column);
  return text;
}

Error::Error(ErrorCode code, const SourceRef& place, const std::string& message)
    : std::runtime_error(
          EscapeMessage(place.file.empty() ? message : place.ToString() + ": " + message)),
      code_(code) {}

}  // namespace trainer
