#pragma once
// A JSON reader for tests, independent of the writers. Input that RFC 8259 does not allow fails the
// test.

#include <map>
#include <string>
#include <vector>

namespace trainer {

struct JsonValue {
  std::string text;   // a string's; or "true", "false", "null"
  double number = 0;  // of a number
  std::map<std::string, JsonValue> members;
  std::vector<JsonValue> items;

  // A missing member or item fails the test and returns an empty value.
  const JsonValue& operator[](const std::string& name) const;
  const JsonValue& operator[](size_t index) const;
  size_t size() const { return items.size(); }
};

JsonValue ReadJson(const std::string& text);

}  // namespace trainer
