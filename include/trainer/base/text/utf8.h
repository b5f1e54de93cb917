#pragma once

#include <cstddef>
#include <string_view>

namespace trainer {

// Returns the bytes of the UTF-8 character with which `text`, which is not empty, begins; 0 if it
// does not begin with one.
size_t Utf8Length(std::string_view text);

// Whether the text is UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace trainer
