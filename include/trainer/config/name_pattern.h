#pragma once
// Names of layers as flags give them: one name, or a pattern between slashes.

#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace trainer {

// Whether `text` is a pattern: it begins and ends with a slash, as in /conv.*/.
bool IsPattern(const std::string& text);

// A name, or the regular expression (ECMAScript) of a pattern, which must match a whole name.
class NamePattern {
 public:
  // Throws kUsage for a wrong regular expression, with a message that begins with `flag`, such as
  // "--freeze=/conv[/".
  NamePattern(const std::string& text, const std::string& flag);

  bool Matches(const std::string& name) const;

 private:
  std::string name_;
  std::optional<std::regex> pattern_;  // no value: a name
};

// Returns a sentence that says that `text`, a pattern or a name, matches none of `names`.
std::string NoMatch(const std::string& text, const std::vector<std::string>& names);

}  // namespace trainer
