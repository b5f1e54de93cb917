#pragma once

#include <string>
#include <string_view>

namespace trainer {

// Returns the text with the letters A to Z as a to z; all other bytes, including UTF-8, stay.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace trainer
