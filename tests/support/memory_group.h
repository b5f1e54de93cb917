#pragma once
// A control group that limits the memory of the processes in it.

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace trainer {

// The constructor creates the group; the destructor removes it, when its processes must have ended.
// Needs version 1 of control groups and root: elsewhere `made()` is false, and tests are skipped.
class MemoryGroup {
 public:
  explicit MemoryGroup(uint64_t bytes)
      : name_("trainer_test_" + std::to_string(getpid())), folder_(kMount + name_) {
    std::error_code error;
    if (!std::filesystem::exists(std::string(kMount) + kLimit, error)) return;
    if (!std::filesystem::create_directory(folder_, error)) return;
    made_ = Write(kLimit, std::to_string(bytes));
  }
  ~MemoryGroup() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool made() const { return made_; }
  // Returns the name in messages, for example "/trainer_test_17".
  std::string name() const { return "/" + name_; }
  // Moves this process into the group.
  bool Enter() const { return Write("cgroup.procs", "0"); }
  // Returns the file that takes process numbers; "0" is the writer's own.
  std::string entry() const { return folder_ + "/cgroup.procs"; }

 private:
  static constexpr char kMount[] = "/sys/fs/cgroup/memory/";
  static constexpr char kLimit[] = "memory.limit_in_bytes";

  bool Write(const std::string& file, const std::string& text) const {
    std::ofstream out(folder_ + "/" + file);
    out << text;
    return static_cast<bool>(out.flush());
  }

  std::string name_, folder_;
  bool made_ = false;
};

}  // namespace trainer
