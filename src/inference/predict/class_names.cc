#include "trainer/inference/predict/class_names.h"

#include <glog/logging.h>

#include <sstream>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/text_file.h"
#include "trainer/base/text/text.h"
#include "trainer/input/class_folders.h"

namespace trainer {

std::vector<std::string> ReadClassNames(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 26;
  if (IsDirectory(path)) return FindClassNames(path);
  std::vector<std::string> names;
  std::istringstream lines(ReadListFile(path, kMaxBytes));
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    names.push_back(line);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

std::vector<std::string> ReadClassNames(const std::string& path, int64_t classes) {
  std::vector<std::string> names = ReadClassNames(path);
  if (static_cast<int64_t>(names.size()) == classes) return names;
  throw Error(ErrorCode::kData, {path},
              IsDirectory(path) ? Join("the folder has ", names.size(), " subfolders for ", classes,
                                       " classes; give the folder that the net was trained on")
                                : Join("the file has ", names.size(), " names for ", classes,
                                       " classes; write one line per class, class 0 first"));
}

std::vector<std::string> ReadClassNamesOfRun(const std::string& path, int64_t classes) {
  if (path.empty()) return {};
  try {
    return ReadClassNames(path, classes);
  } catch (const Error& error) {
    LOG(WARNING) << EscapeControl(
        Join("the classes have no names: ", error.what(), "; give the names with --labels=FILE"));
    return {};
  }
}

std::string FindLabels(const std::string& set) {
  const std::string path = JoinPath(FolderOf(set), kLabelsName);
  return Exists(path) ? path : "";
}

}  // namespace trainer
