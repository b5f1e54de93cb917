#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace trainer {

// Returns the number that `text` is as a whole, as std::from_chars reads it: decimal digits with an
// optional minus, without blanks; for a floating-point T also "1e-3", "inf" and "nan". Empty for
// any other text and for a number that T cannot hold.
template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Takes `prefix` and the number after it off the front of `text`. Returns false if `text` does not
// begin with them.
template <class T>
bool TakeNumber(std::string_view* text, std::string_view prefix, T* number) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return error == std::errc();
}

}  // namespace trainer
