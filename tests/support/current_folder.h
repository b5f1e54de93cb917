#pragma once

#include <filesystem>
#include <string>

namespace trainer {

// Makes a folder the current one while the object exists, because files name their data and
// snapshots relative to it.
class CurrentFolder {
 public:
  explicit CurrentFolder(const std::string& folder) { std::filesystem::current_path(folder); }
  ~CurrentFolder() { std::filesystem::current_path(before_); }
  CurrentFolder(const CurrentFolder&) = delete;
  CurrentFolder& operator=(const CurrentFolder&) = delete;

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
};

}  // namespace trainer
