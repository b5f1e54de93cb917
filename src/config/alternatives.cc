#include "trainer/config/alternatives.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::vector<std::string> Alternatives(const std::string& assignment) {
  std::string key;
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  bool in_value = false;
  for (const char c : assignment) {
    if (quote == 0 && c == '[') ++depth;
    if (quote == 0 && c == ']') --depth;
    if (in_value && depth == 0 && (c == '"' || c == '\'') && (quote == 0 || quote == c)) {
      quote = quote == 0 ? c : 0;
    }
    if (!in_value) {
      key += c;
      in_value = c == '=' && depth == 0;
    } else if (c == ',' && depth == 0 && quote == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  if (values.size() == 1) return {assignment};
  for (std::string& value : values) {
    if (value.empty()) {
      throw Error(ErrorCode::kUsage,
                  Join("--set ", assignment,
                       ": a value in the list is empty; write e.g. --set base_lr=0.1,0.01"));
    }
    value = key + value;
  }
  return values;
}

}  // namespace trainer
