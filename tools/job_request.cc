#include "job_request.h"

#include <algorithm>
#include <cctype>

#include "device_flags.h"
#include "plan_parts.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

int CeilDiv(double amount, double unit) {
  return static_cast<int>(std::min(1e6, amount / unit)) + 1;
}

// One core for every 50 million multiply-adds of a forward pass. With less work per core the cores
// would wait for each other most of the time.
int UsefulCores(int64_t macs) { return std::clamp(CeilDiv(static_cast<double>(macs), 5e7), 1, 32); }

// The memory of `ranks` ranks. Each needs what the plan counts, a quarter more for what the plan
// does not count, and half a GiB for the program, its libraries and batches.
int MemoryGiB(const std::vector<PlannedPart>& parts, int ranks) {
  double bytes = 0.5 * static_cast<double>(kGiB);
  for (const PlannedPart& part : parts) bytes += 1.25 * static_cast<double>(part.bytes);
  return CeilDiv(bytes * ranks, static_cast<double>(kGiB));
}

// How long before the end of the slot a program that could not ask the queue is told to stop: the
// time to write two snapshots to a slow disk, because one may be in progress already.
int WarningSeconds(const PlannedTotals& totals) {
  const double bytes = static_cast<double>(totals.weights) * (1 + totals.states_per_weight);
  return 30 + 30 * CeilDiv(2 * bytes / 50e6, 30);
}

}  // namespace

std::string JobName(const std::string& solver) {
  const std::string folder = FileNameOf(FolderOf(solver));
  std::string name = folder.empty() || folder == "." ? FileNameOf(solver) : folder;
  name = name.substr(0, name.find('.'));
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '_') letter = '-';
  }
  return name.empty() ? "train" : name;
}

std::string ShellWord(const std::string& text) {
  if (const std::string escaped = EscapeControl(text); escaped != text) {
    throw Error(ErrorCode::kUsage,
                Join("'", escaped,
                     "': a batch script cannot hold control characters such as line "
                     "breaks; rename the file or give another value"));
  }
  const bool plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("._-/:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char letter : text) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return quoted + "'";
}

std::string SlotTime(const std::string& text) {
  const auto time = ParseWallTime(text);
  if (!time || time->count() < 60) {
    throw Error(ErrorCode::kUsage,
                Join("--time=", EscapeControl(text),
                     ": a time of a minute or more is written 4:00:00, 1-12:00:00 (a day and a "
                     "half), 90 (minutes), 90m or 1h30m"));
  }
  return WallTimeText(*time);
}

void FitToNet(const SolverSpec& spec, JobRequest* job, int processes) {
  PlanTarget target;
  target.device = MakeDevice();
  const PlannedRun run = PlanRun(spec, *target.device);
  if (job->cores == 0) {
    job->cores = std::max(processes, UsefulCores(run.macs / job->ranks()));
  }
  job->memory_gib = MemoryGiB(PartsOf(run.totals, target), job->ranks_per_node * processes);
  job->warning_seconds = WarningSeconds(run.totals);
}

}  // namespace trainer
