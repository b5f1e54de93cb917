#pragma once
// A reader of JSON for tests, independent of what writes it. Anything that RFC 8259 does not allow
// fails the test.

#include <map>
#include <string>
#include <vector>

namespace trainer {

struct JsonValue {
  std::string text;   // of a string; "true", "false", "null"
  double number = 0;  // of a number
  std::map<std::string, JsonValue> members;
  std::vector<JsonValue> items;

  // Missing ones fail the test and are null.
  const JsonValue& operator[](const std::string& name) const;
  const JsonValue& operator[](size_t index) const;
  size_t size() const { return items.size(); }
};

JsonValue ReadJson(const std::string& text);

}  // namespace trainer
