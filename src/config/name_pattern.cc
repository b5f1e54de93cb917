#include "trainer/config/name_pattern.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

bool IsPattern(const std::string& text) {
  return text.size() > 2 && text.starts_with('/') && text.ends_with('/');
}

NamePattern::NamePattern(const std::string& text, const std::string& flag) : name_(text) {
  if (!IsPattern(text)) return;
  try {
    pattern_.emplace(text.substr(1, text.size() - 2));
  } catch (const std::regex_error& error) {
    throw Error(ErrorCode::kUsage,
                EscapeControl(Join(flag, ": '", text, "' is not a regular expression: ",
                                   error.what(), "; write e.g. /conv[1-3]/ or /.*_bn/")));
  }
}

bool NamePattern::Matches(const std::string& name) const {
  return pattern_ ? std::regex_match(name, *pattern_) : name == name_;
}

std::string NoMatch(const std::string& text, const std::vector<std::string>& names) {
  if (!IsPattern(text)) return Join("there is no layer '", text, "'.", DidYouMean(text, names));
  return Join("no layer has a name that matches ", text,
              "; the pattern must match the whole name, as /.*conv.*/ does for every name that "
              "contains 'conv'");
}

}  // namespace trainer
