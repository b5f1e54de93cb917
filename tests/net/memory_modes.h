#pragma once
// What tests run in each mode of memory take as their parameter.

#include <gtest/gtest.h>

#include <string>

#include "trainer/net/net.h"

namespace trainer {

inline auto AllMemoryModes() {
  return testing::Values(BufferReuse::kShared, BufferReuse::kSeparate, BufferReuse::kPoisoned);
}

// The parameter's part in a test's name.
inline std::string NameOfMode(const testing::TestParamInfo<BufferReuse>& mode) {
  const char* const names[] = {"Shared", "Separate", "Poisoned"};
  return names[static_cast<size_t>(mode.param)];
}

}  // namespace trainer
