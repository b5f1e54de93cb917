#include "job_request.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "device_flags.h"
#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/command.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/cli/verb.h"
#include "trainer/solver/solver.h"

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
int MemoryGiB(const std::vector<MemoryItem>& items, int ranks) {
  double bytes = 0.5 * static_cast<double>(kGiB);
  for (const MemoryItem& item : items) bytes += 1.25 * static_cast<double>(item.bytes);
  return CeilDiv(bytes * ranks, static_cast<double>(kGiB));
}

// The seconds that a snapshot takes: as on a file system of 50 MB/s, or longer where writing and
// reading back a file beside the snapshots is slower than that now.
double SnapshotSeconds(const std::string& prefix, const MemoryEstimate& memory) {
  constexpr double kBusyRate = 50e6;
  constexpr size_t kMostProbe = size_t{32} << 20;
  using Clock = std::chrono::steady_clock;
  const size_t bytes = memory.weights * (1 + static_cast<size_t>(memory.states_per_weight));
  const double usual = 1 + static_cast<double>(bytes) / kBusyRate;
  if (!std::filesystem::is_directory(FolderOf(prefix))) return usual;
  const std::string probe(std::clamp<size_t>(bytes, 1, kMostProbe), '\x5a');
  const Clock::time_point start = Clock::now();
  {
    AtomicFile file(prefix + "_write_speed");
    file.Append(probe.data(), probe.size());
    file.Finish();  // The destructor removes the temporary file.
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double measured = seconds * static_cast<double>(bytes) / static_cast<double>(probe.size());
  return std::max(usual, measured);
}

// Takes as many cores as the net keeps busy where the user names none, but no more than nodes have.
void ChooseCores(int useful, int processes, JobSpec* job) {
  const int most = std::max(1, job->node_cores / job->ranks_per_node);
  if (job->cores == 0) {
    job->cores = std::max(processes, useful);
    if (job->node_cores > 0) job->cores = std::min(job->cores, most);
  } else if (job->node_cores > 0 && job->cores * job->ranks_per_node > job->node_cores) {
    throw Error(ErrorCode::kUsage,
                Join("--cores=", job->cores, ": ", job->ranks_per_node,
                     job->ranks_per_node == 1 ? " rank" : " ranks", " per node would need ",
                     job->cores * job->ranks_per_node, " cores, but the largest node has ",
                     job->node_cores, " (sinfo); give --cores=", most, " or less"));
  }
  if (job->node_cores > 0 && job->ranks_per_node > job->node_cores) {
    throw Error(ErrorCode::kUsage, Join("--ranks_per_node=", job->ranks_per_node,
                                        ": the largest node has only ", job->node_cores,
                                        " cores (sinfo), and each rank needs at least one; use "
                                        "more nodes (--nodes) and fewer ranks per node"));
  }
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

std::chrono::seconds SlotTime(const std::string& text) {
  const auto time = ParseWallTime(text);
  if (!time || time->count() < 60) {
    throw Error(ErrorCode::kUsage,
                Join("--time=", EscapeControl(text),
                     ": not a time of at least one minute; write 4:00:00, 1-12:00:00 (a day and a "
                     "half), 90 (minutes), 90m or 1h30m"));
  }
  return *time;
}

Flag CoresFlag() {
  return {
      .name = "cores",
      .kind = FlagKind::kWhole,
      .value = "N",
      .fallback = "0",
      .help = "cores for each rank; 0: as many as the net keeps busy, up to the cores of a node",
      .max = 100000};
}

Flag ArrayLimitFlag() {
  return {.name = "array_limit",
          .kind = FlagKind::kWhole,
          .value = "N",
          .fallback = "0",
          .help = "run at most N tasks of the job array at once; 0: no limit (Slurm)",
          .max = 100000};
}

std::vector<Flag> FlagsOfTrain(std::span<const std::string_view> without) {
  // The flags refer to texts of the set and to members of the verb.
  static const std::unique_ptr<Verb> train = VerbRegistry::Get().Find("train")->make();
  static FlagSet set("train");
  if (set.flags().empty()) train->Declare(set);
  std::vector<Flag> flags(set.flags().begin(), set.flags().end());
  std::erase_if(flags, [&](const Flag& flag) {
    return std::ranges::find(without, flag.name) != without.end();
  });
  return flags;
}

int CoresOfLargestNode(const std::string& partition) {
  std::vector<std::string> words = {"sinfo", "-h", "-e", "-o", "%c"};
  if (!partition.empty()) words.insert(words.end(), {"-p", partition});
  const CommandResult result = RunCommand(words, std::chrono::seconds(5));
  if (!result.problem.empty()) return 0;
  int most = 0;
  std::istringstream lines(result.out);
  for (int cores = 0; lines >> cores;) most = std::max(most, cores);
  return most;
}

int WarningSeconds(std::chrono::seconds slot, double snapshot) {
  const double least = std::ceil(5 + 2 * snapshot);
  const double wished = std::max(60.0, least + 30);
  return static_cast<int>(std::max(least, std::min(wished, static_cast<double>(slot.count()) / 8)));
}

void FitToNet(const SolverSpec& spec, JobSpec* job, int processes) {
  const std::unique_ptr<Device> device = MakeDevice();
  const MemoryEstimate memory = EstimateMemory(spec, *device);
  ChooseCores(UsefulCores(memory.macs / job->ranks()), processes, job);
  job->memory_gib =
      MemoryGiB(memory.Items(UnlimitedRoom(*device)), job->ranks_per_node * processes);
  const double snapshot =
      SavesSnapshots(spec.proto) ? SnapshotSeconds(spec.proto.snapshot_prefix(), memory) : 1;
  job->warning_seconds = WarningSeconds(job->time, snapshot);
  if (2 * job->warning_seconds > job->time.count()) {
    LOG(WARNING) << "--time=" << WallTimeText(job->time) << ": a snapshot of this net may take "
                 << static_cast<int>(snapshot + 1)
                 << " s to write, so less than half of each job's time is left for training; give "
                    "a longer --time";
  }
}

}  // namespace trainer
