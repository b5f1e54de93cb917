#pragma once
// What `trainer dataset` can do. One task is one entry, registered by the file that defines it.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flags.h"
#include "trainer/dataset/record_set.h"

namespace trainer {

struct DatasetTask {
  std::string_view wanted;       // its arguments: "IMAGES LABELS DB"
  size_t words = 0;              // how many, at most
  size_t min_words = 0;          // and at least; 0: as many
  std::string_view text;         // for help, beginning with the task's name
  std::string_view example;      // a command
  std::vector<Flag> flags = {};  // beside --backend, --seed and --threads, which all share
  void (*run)(const Flags& flags) = nullptr;
};

// --backend and --shard_size of a set at `path`.
RecordOutput OutputOf(const Flags& flags, const std::string& path);
// --threads: those that this process was given, unless it says otherwise.
int ThreadsOf(const Flags& flags);
// With --write_crc: of a set that was just made.
void WriteChecksumsOf(const Flags& flags, const std::string& path);

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
