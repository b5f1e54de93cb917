#pragma once
// Provides a folder of text files and caught errors for the tests of config.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "support/temp_folder.h"
#include "trainer/base/error/error.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// The code and text of an expected error. A test fails if nothing is thrown.
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
