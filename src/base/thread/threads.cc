#include "trainer/base/thread/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the file's content, or "" if it cannot be opened.
std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  return content.str();
}

// Returns the whole number at the start of `text`, or `otherwise` if there is none.
long long FirstNumber(std::string_view text, long long otherwise) {
  long long value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns the smaller of two limits, where 0 means no limit.
int Smaller(int a, int b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

// Returns the smallest limit that read(folder) reports for `root` + `path` and each folder above
// it, including `root`. In a container the path may be the host's; then only its upper part exists
// here, or nothing.
template <class Read>
int SmallestUpwards(const std::string& root, std::string path, const Read& read) {
  int cpus = 0;
  while (!path.empty() && path != "/") {
    cpus = Smaller(cpus, read(root + path));
    path.resize(path.find_last_of('/'));
  }
  return Smaller(cpus, read(root));
}

// Returns the limit in CPUs of one folder of control groups version 2, 0 for none.
int ReadV2(const std::string& folder) { return ParseCpuMax(Slurp(folder + "/cpu.max")); }

// Returns the limit in CPUs of one folder of control groups version 1, 0 for none.
int ReadV1(const std::string& folder) {
  return QuotaCpus(FirstNumber(Slurp(folder + "/cpu.cfs_quota_us"), 0),
                   FirstNumber(Slurp(folder + "/cpu.cfs_period_us"), 0));
}

// Returns the number of CPUs in the affinity mask. CPU_COUNT needs a set as large as the kernel's,
// which may exceed cpu_set_t's 1024 CPUs.
int CountMask() {
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 4) {
    std::vector<cpu_set_t> set(static_cast<size_t>(cpus) / 1024);
    const size_t bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, set.data()) == 0) {
      return std::max(1, CPU_COUNT_S(bytes, set.data()));
    }
  }
  return 1;
}

}  // namespace

int ParseThreadCount(const char* value) {
  if (value == nullptr) return 0;
  std::string_view text(value);
  text = text.substr(0, text.find(','));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::max(ParseNumber<int>(text).value_or(0), 0);
}

int QuotaCpus(long long quota_us, long long period_us) {
  if (quota_us < 1 || period_us < 1) return 0;
  const long long cpus = quota_us / period_us + (quota_us % period_us != 0 ? 1 : 0);
  return static_cast<int>(std::min<long long>(cpus, std::numeric_limits<int>::max()));
}

int ParseCpuMax(std::string_view content) {
  const size_t blank = content.find(' ');
  if (blank == std::string_view::npos) return 0;
  return QuotaCpus(FirstNumber(content.substr(0, blank), 0),
                   FirstNumber(content.substr(blank + 1), 0));
}

int CgroupCpus(const std::string& root, std::string_view proc_cgroup) {
  int cpus = 0;
  std::istringstream lines{std::string(proc_cgroup)};
  for (std::string line; std::getline(lines, line);) {  // "<id>:<controllers>:<path>"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos || line.substr(second + 1, 1) != "/") continue;
    const std::string path = line.substr(second + 1);
    const std::vector<std::string> names =
        SplitList(std::string_view(line).substr(first + 1, second - first - 1));
    if (names.empty()) {
      cpus = Smaller(cpus, SmallestUpwards(root, path, ReadV2));
      cpus = Smaller(cpus, SmallestUpwards(root + "/unified", path, ReadV2));
    } else if (std::ranges::find(names, "cpu") != names.end()) {
      for (const char* mount : {"/cpu", "/cpu,cpuacct"}) {
        cpus = Smaller(cpus, SmallestUpwards(root + mount, path, ReadV1));
      }
    }
  }
  return cpus;
}

ThreadFacts ReadThreadFacts() {
  ThreadFacts facts;
  facts.mask = CountMask();
  facts.quota = CgroupCpus("/sys/fs/cgroup", Slurp("/proc/self/cgroup"));
  facts.omp = ParseThreadCount(std::getenv("OMP_NUM_THREADS"));
  facts.slurm = ParseThreadCount(std::getenv("SLURM_CPUS_PER_TASK"));
  return facts;
}

int ChooseThreads(const ThreadFacts& facts) {
  const int mask = std::max(1, facts.mask / facts.ranks);
  const int quota = facts.quota == 0 ? 0 : std::max(1, facts.quota / facts.quota_ranks);
  const int wish = facts.omp > 0 ? facts.omp : facts.slurm > 0 ? facts.slurm : mask;
  return std::max(1, std::min(Smaller(wish, quota), mask));
}

std::string DescribeThreads(const ThreadFacts& facts) {
  const int threads = ChooseThreads(facts);
  std::vector<std::string> reasons;
  if (facts.omp > 0) {
    reasons.push_back(Join("OMP_NUM_THREADS=", facts.omp));
  } else if (facts.slurm > 0) {
    reasons.push_back(Join("SLURM_CPUS_PER_TASK=", facts.slurm));
  }
  reasons.push_back(Join("affinity mask of ", facts.mask, facts.mask == 1 ? " CPU" : " CPUs"));
  if (facts.quota > 0) {
    reasons.push_back(
        Join("cgroup quota of ", facts.quota, facts.quota == 1 ? " CPU" : " CPUs",
             facts.quota_ranks > 1 ? Join(" for ", facts.quota_ranks, " ranks") : ""));
  }
  if (facts.ranks > 1) reasons.push_back(Join("shared by ", facts.ranks, " ranks"));
  return Join(threads, threads == 1 ? " thread (" : " threads (", JoinList(reasons), ")");
}

namespace {

std::atomic<int> g_ranks{1}, g_quota_ranks{1};

// Reads the facts at the first call. ShareThreads has no effect after that.
const ThreadFacts& Facts() {
  static const ThreadFacts facts = [] {
    ThreadFacts read = ReadThreadFacts();
    read.ranks = g_ranks;
    read.quota_ranks = g_quota_ranks;
    return read;
  }();
  return facts;
}

}  // namespace

void ShareThreads(int ranks, int quota_ranks) {
  g_ranks = std::max(1, ranks);
  g_quota_ranks = std::max(1, quota_ranks);
}

int AvailableThreads() { return ChooseThreads(Facts()); }

std::string DescribeThreads() { return DescribeThreads(Facts()); }

}  // namespace trainer
