#pragma once
// What `trainer dataset` can do. One task is one entry, registered by the file that defines it.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flags.h"

namespace trainer {

struct DatasetTask {
  std::string_view wanted;       // its arguments: "IMAGES LABELS DB"
  size_t words = 0;              // how many
  std::string_view text;         // for help, beginning with the task's name
  std::string_view example;      // a command
  std::vector<Flag> flags = {};  // beside --backend and --seed, which all share
  void (*run)(const Flags& flags) = nullptr;
};

// By name.
inline std::map<std::string, DatasetTask>& DatasetTasks() {
  static std::map<std::string, DatasetTask> tasks;
  return tasks;
}

// const RegisterDatasetTask kIdx("idx", {.wanted = "IMAGES LABELS DB", ...});
struct RegisterDatasetTask {
  RegisterDatasetTask(const char* name, DatasetTask task) {
    DatasetTasks().emplace(name, std::move(task));
  }
};

}  // namespace trainer
