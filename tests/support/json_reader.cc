#include "support/json_reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace trainer {
namespace {

class JsonParser {
 public:
  explicit JsonParser(const std::string& text) : text_(text) {}

  JsonValue All() {
    JsonValue value = Value();
    Blanks();
    if (at_ != text_.size()) Fail("more than one value");
    return value;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_));
  }
  void Blanks() {
    while (at_ < text_.size() && std::string(" \t\r\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  char Peek() {
    Blanks();
    if (at_ == text_.size()) Fail("the text ends");
    return text_[at_];
  }
  void Take(char wanted) {
    if (Peek() != wanted) Fail(std::string("no ") + wanted);
    ++at_;
  }
  bool TakeIf(char wanted) {
    if (Peek() != wanted) return false;
    ++at_;
    return true;
  }

  JsonValue Value() {
    const char c = Peek();
    if (c == '{') return Object();
    if (c == '[') return Array();
    JsonValue value;
    if (c == '"') {
      value.text = String();
      return value;
    }
    for (const char* word : {"true", "false", "null"}) {
      if (text_.compare(at_, std::string(word).size(), word) != 0) continue;
      at_ += std::string(word).size();
      value.text = word;
      return value;
    }
    if (c != '-' && (c < '0' || c > '9')) Fail("no value");
    char* end = nullptr;
    value.number = std::strtod(text_.c_str() + at_, &end);
    at_ = static_cast<size_t>(end - text_.c_str());
    return value;
  }

  JsonValue Object() {
    JsonValue value;
    Take('{');
    if (TakeIf('}')) return value;
    do {
      Blanks();
      const std::string name = String();
      Take(':');
      if (!value.members.emplace(name, Value()).second) Fail("'" + name + "' twice");
    } while (TakeIf(','));
    Take('}');
    return value;
  }

  JsonValue Array() {
    JsonValue value;
    Take('[');
    if (TakeIf(']')) return value;
    do value.items.push_back(Value());
    while (TakeIf(','));
    Take(']');
    return value;
  }

  std::string String() {
    std::string out;
    Take('"');
    for (;; ++at_) {
      if (at_ >= text_.size()) Fail("the text ends in a string");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) Fail("a control byte");
      if (c == '"') break;
      out += c == '\\' ? Escape() : c;
    }
    ++at_;
    return out;
  }

  char Escape() {
    const std::string from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    const char c = at_ + 1 < text_.size() ? text_[++at_] : '\0';
    const size_t found = from.find(c);
    if (c != '\0' && found != std::string::npos) return to[found];
    if (c != 'u' || at_ + 4 >= text_.size()) Fail("a bad escape");
    const std::string digits = text_.substr(at_ + 1, 4);
    at_ += 4;
    return static_cast<char>(std::stoi(digits, nullptr, 16));  // escapes below 256 only
  }

  const std::string& text_;
  size_t at_ = 0;
};

const JsonValue& Nothing() {
  static const JsonValue nothing;
  return nothing;
}

}  // namespace

const JsonValue& JsonValue::operator[](const std::string& name) const {
  const auto found = members.find(name);
  if (found != members.end()) return found->second;
  ADD_FAILURE() << "no member '" << name << "'";
  return Nothing();
}

const JsonValue& JsonValue::operator[](size_t index) const {
  if (index < items.size()) return items[index];
  ADD_FAILURE() << "no item " << index << " of " << items.size();
  return Nothing();
}

JsonValue ReadJson(const std::string& text) {
  try {
    return JsonParser(text).All();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "no JSON: " << error.what() << "\n" << text;
    return {};
  }
}

}  // namespace trainer
