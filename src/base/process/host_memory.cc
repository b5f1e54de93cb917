#include "trainer/base/process/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::atomic<int> g_memory_ranks{1};

// Takes the least limit.
class Bounds {
 public:
  // `used` of `most` bytes are taken by all ranks, which share them.
  void AddShared(uint64_t most, uint64_t used, const std::string& who) {
    const int ranks = g_memory_ranks;
    const auto count = static_cast<uint64_t>(ranks);
    Add(most / count, used / count,
        ranks == 1 ? who : Join("each of ", ranks, " ranks' part of ", who));
  }
  // By this process.
  void Add(uint64_t most, uint64_t used, const std::string& who) {
    const uint64_t left = most > used ? most - used : 0;
    if (memory_.limit.empty() || most < memory_.total) {
      memory_.total = most;
      memory_.limit = who;
    }
    if (!any_ || left < memory_.available) memory_.available = left;
    any_ = true;
  }
  const HostMemory& Get() const { return memory_; }

 private:
  HostMemory memory_;
  bool any_ = false;
};

// The number after `key` in lines "key 123" or "key: 123 kB", in the file's unit.
std::optional<uint64_t> NumberOf(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t number = 0;
    if (words >> name >> number && (name == key || name == key + ":")) return number;
  }
  return std::nullopt;
}

// A file that holds one number; nothing for "max" and for files that are not there.
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The files of one version of control groups.
struct GroupFiles {
  const char *mount, *most, *used, *droppable;
};
constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                  "inactive_file"};
constexpr GroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                  "memory.usage_in_bytes", "total_inactive_file"};

// The limits of group `path` and of those above it.
void AddGroups(const std::string& root, const GroupFiles& files, std::string path, Bounds* bounds) {
  for (;; path = FolderOf(path)) {
    const std::string folder = root + files.mount + (path == "/" ? "" : path) + "/";
    constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 says so with a large number
    const std::optional<uint64_t> most = NumberIn(folder + files.most);
    if (most && *most < kNoLimit) {
      const uint64_t used = NumberIn(folder + files.used).value_or(0);
      const uint64_t droppable = NumberOf(folder + "memory.stat", files.droppable).value_or(0);
      bounds->AddShared(*most, used - std::min(used, droppable),
                        Join("the control group ", EscapeControl(path)));
    }
    if (path == "/" || path == ".") return;
  }
}

// Lines "0::/path" (version 2) and "7:cpu,memory:/path" (version 1).
void AddControlGroups(const std::string& root, Bounds* bounds) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) AddGroups(root, kVersion2, path, bounds);
    for (const std::string& name : SplitList(controllers)) {
      if (name == "memory") AddGroups(root, kVersion1, path, bounds);
    }
  }
}

// 0 for a variable that is not there, or no number.
uint64_t NumberOfVariable(const char* name) {
  const char* const text = std::getenv(name);
  uint64_t number = 0;
  if (text != nullptr) {
    const std::string_view digits(text);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
  }
  return number;
}

// What the job may take on this machine, in MiB; --mem=0 asks for all. Where the site does not
// confine jobs by control groups, Slurm ends those that take more by and by.
void AddSlurm(Bounds* bounds) {
  if (const uint64_t node = NumberOfVariable("SLURM_MEM_PER_NODE")) {
    bounds->AddShared(node << 20, 0, "SLURM_MEM_PER_NODE");
  }
  const uint64_t cpus = NumberOfVariable("SLURM_CPUS_ON_NODE");
  if (const uint64_t cpu = NumberOfVariable("SLURM_MEM_PER_CPU"); cpu > 0 && cpus > 0) {
    bounds->AddShared((cpu * cpus) << 20, 0,
                      Join("SLURM_MEM_PER_CPU of ", cpus, cpus == 1 ? " CPU" : " CPUs"));
  }
}

}  // namespace

void ShareMemory(int ranks) { g_memory_ranks = std::max(1, ranks); }

HostMemory ReadHostMemory(const std::string& root) {
  Bounds bounds;
  const std::string meminfo = root + "/proc/meminfo";
  if (const auto total = NumberOf(meminfo, "MemTotal")) {
    const uint64_t available = NumberOf(meminfo, "MemAvailable").value_or(*total);
    bounds.AddShared(*total << 10, (*total - std::min(available, *total)) << 10, "the machine");
  }
  AddControlGroups(root, &bounds);
  AddSlurm(&bounds);
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    const uint64_t used = NumberOf(root + "/proc/self/status", "VmSize").value_or(0) << 10;
    bounds.Add(space.rlim_cur, used, "ulimit -v");
  }
  return bounds.Get();
}

}  // namespace trainer
