#include "run_files.h"

#include <filesystem>
#include <sstream>

#include "trainer/base/file/file.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {

std::optional<std::string> FileOfRun(const RunMetrics& run, const std::string& name) {
  constexpr uint64_t kMostBytes = 64 << 20;
  const std::string path = JoinPath(run.path, name);
  std::error_code failed;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, failed))) {
    return std::nullopt;
  }
  return ReadFile(path, kMostBytes);
}

std::optional<JsonObject> JsonOfRun(const RunMetrics& run, const std::string& name) {
  const std::optional<std::string> text = FileOfRun(run, name);
  return text ? ParseJsonObject(*text) : std::nullopt;
}

// The program wrote the file with one field per line, and indents the fields of messages.
std::map<std::string, std::string> SettingsOfRun(const RunMetrics& run) {
  std::map<std::string, std::string> settings;
  std::istringstream lines(FileOfRun(run, kSolverName).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos || line[0] == ' ') continue;
    std::string& value = settings[line.substr(0, colon)];
    value += (value.empty() ? "" : " ") + line.substr(colon + 2);
  }
  return settings;
}

}  // namespace trainer
