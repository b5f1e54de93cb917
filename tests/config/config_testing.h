#pragma once
// Helpers of the tests of config: text files in a folder of their own, and caught errors.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "support/temp_folder.h"
#include "trainer/base/error/error.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// What an expected error says; a test fails when there is none.
struct Caught {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
};

inline Caught Catch(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline Caught CatchConfig(const std::function<void()>& action) {
  Caught caught = Catch(action);
  EXPECT_EQ(caught.code, ErrorCode::kConfig) << caught.text;
  return caught;
}

}  // namespace trainer
