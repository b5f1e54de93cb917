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

// Keeps the smallest of all limits, and separately the least memory that any of them leaves free.
class Bounds {
 public:
  // Adds a limit of `most` bytes that all ranks share; `used` bytes are taken.
  void AddShared(uint64_t most, uint64_t used, const std::string& who) {
    const int ranks = g_memory_ranks;
    const auto count = static_cast<uint64_t>(ranks);
    Add(most / count, used / count,
        ranks == 1 ? who : Join("each of ", ranks, " ranks' part of ", who));
  }
  // Adds a limit of `most` bytes for this process alone; `used` bytes are taken. `who` names the
  // limit.
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

// Returns the number after `key` in lines "key 123" or "key: 123 kB", in the file's unit; nothing
// if the file or the key is missing.
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

// Reads a file that holds one number. Returns nothing for "max" and for missing files.
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The names of the files of one version of control groups.
struct GroupFiles {
  const char *mount, *most, *used, *droppable;
};
constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                  "inactive_file"};
constexpr GroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                  "memory.usage_in_bytes", "total_inactive_file"};

// Adds the limits of group `path` and of all groups above it.
void AddGroups(const std::string& root, const GroupFiles& files, std::string path, Bounds* bounds) {
  for (;; path = FolderOf(path)) {
    const std::string folder = root + files.mount + (path == "/" ? "" : path) + "/";
    constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 writes a large number instead
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

// Adds the memory limits of this process's control groups. Parses lines "0::/path" (version 2) and
// "7:cpu,memory:/path" (version 1).
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

// Returns 0 for a variable that is not set or that does not begin with a number.
uint64_t NumberOfVariable(const char* name) {
  const char* const text = std::getenv(name);
  uint64_t number = 0;
  if (text != nullptr) {
    const std::string_view digits(text);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
  }
  return number;
}

// Adds the memory, in MiB, that the job may use on this machine; 0 is skipped, because --mem=0 asks
// for all memory. The limit matters also where the site does not confine jobs by control groups,
// because Slurm then ends jobs that use more after some time.
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
