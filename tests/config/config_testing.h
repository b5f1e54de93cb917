#pragma once
// Helpers of the tests of config: text files in a folder of their own, and caught errors.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "trainer/base/error.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// A folder that lives as long as the test.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = testing::TempDir() + "config_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot make " << pattern;
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }

  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

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
