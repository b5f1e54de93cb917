#include "trainer/base/text/json.h"

#include <charconv>
#include <cmath>

namespace trainer {
namespace {

// Returns `text` as a JSON string. Bytes from 0x80 on are copied, so the text must be UTF-8.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      quoted += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Returns the fewest digits that give the same number again, and "null" for infinities and NaN.
template <class T>
std::string Digits(T value) {
  if (!std::isfinite(value)) return "null";
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace

Json::Json(double value) : text_(Digits(value)) {}
Json::Json(float value) : text_(Digits(value)) {}

Json::Json(std::string_view value) : text_(Quoted(value)) {}

Json& Json::Set(std::string_view key, Json value) {
  keys_.push_back(Quoted(key));
  return Push(std::move(value));
}

Json& Json::Push(Json value) {
  items_.push_back(std::move(value));
  return *this;
}

std::string Json::Dump(size_t indent) const {
  if (kind_ == Kind::kLiteral) return text_;
  const bool object = kind_ == Kind::kObject;
  if (items_.empty()) return object ? "{}" : "[]";
  const std::string line = "\n" + std::string(indent, ' ');
  std::string out(1, object ? '{' : '[');
  for (size_t i = 0; i < items_.size(); ++i) {
    out += (i == 0 ? "" : ",") + line + "  ";
    if (object) out += keys_[i] + ": ";
    out += items_[i].Dump(indent + 2);
  }
  return out + line + (object ? '}' : ']');
}

std::string Json::OneLine() const {
  if (kind_ == Kind::kLiteral) return text_;
  const bool object = kind_ == Kind::kObject;
  std::string out(1, object ? '{' : '[');
  for (size_t i = 0; i < items_.size(); ++i) {
    out += i == 0 ? "" : ", ";
    if (object) out += keys_[i] + ": ";
    out += items_[i].OneLine();
  }
  return out + (object ? '}' : ']');
}

}  // namespace trainer
