#pragma once

#include <gtest/gtest.h>

#include <string>

namespace trainer {

// Returns `text` with the first `from` replaced by `to`. The test fails if there is none.
inline std::string Edited(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) return text.replace(at, from.size(), to);
  ADD_FAILURE() << "'" << from << "' is not in:\n" << text;
  return text;
}

}  // namespace trainer
