#pragma once
// JSON for programs that read what a verb prints (RFC 8259).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// A value. Objects keep the order in which their members were set.
class Json {
 public:
  Json() : text_("null") {}
  Json(bool value) : text_(value ? "true" : "false") {}  // NOLINT: these stand for JSON literals
  Json(int64_t value) : text_(std::to_string(value)) {}
  Json(int value) : Json(static_cast<int64_t>(value)) {}
  Json(size_t value) : text_(std::to_string(value)) {}
  Json(double value);  // null when it is not finite
  Json(float value);   // the same, with as many digits as a float has
  Json(std::string_view value);
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(const char* value) : Json(std::string_view(value)) {}

  // Returns an empty object, to be filled by Set.
  static Json Object() { return Json(Kind::kObject); }
  // Returns an empty array, to be filled by Push.
  static Json Array() { return Json(Kind::kArray); }

  // Adds a member to an object, even if it has one of this name. Returns the object.
  Json& Set(std::string_view key, Json value);
  // Appends an element to an array, and returns the array.
  Json& Push(Json value);

  // Returns the value indented by two blanks a level, with a newline at the end.
  std::string ToString() const { return Dump(0) + "\n"; }
  // Returns the value on one line, with a newline at the end.
  std::string ToLine() const { return OneLine() + "\n"; }

 private:
  enum class Kind { kLiteral, kObject, kArray };
  explicit Json(Kind kind) : kind_(kind) {}
  // Returns the value over several lines, whose inner ones are indented by `indent` + 2 blanks.
  std::string Dump(size_t indent) const;
  // Returns the value on one line, without a newline.
  std::string OneLine() const;

  Kind kind_ = Kind::kLiteral;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<Json> items_;
};

}  // namespace trainer
