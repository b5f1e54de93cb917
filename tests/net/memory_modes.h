#pragma once
// Parameters of the tests that run in each memory mode.

#include <gtest/gtest.h>

#include <string>

#include "trainer/net/net.h"

namespace trainer {

inline auto AllMemoryModes() {
  return testing::Values(BufferReuse::kShared, BufferReuse::kSeparate, BufferReuse::kPoisoned);
}

// Returns the parameter's part of a test's name.
inline std::string NameOfMode(const testing::TestParamInfo<BufferReuse>& mode) {
  const char* const names[] = {"Shared", "Separate", "Poisoned"};
  return names[static_cast<size_t>(mode.param)];
}

}  // namespace trainer
