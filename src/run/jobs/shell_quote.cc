#include "jobs/shell_quote.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::string ShellQuote(const std::string& text) {
  if (const std::string escaped = EscapeControl(text); escaped != text) {
    throw Error(ErrorCode::kUsage, Join("'", escaped,
                                        "': a batch script cannot contain control characters such "
                                        "as line breaks; rename the file or give another value"));
  }
  const bool plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("._-/:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char letter : text) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return quoted + "'";
}

}  // namespace trainer
