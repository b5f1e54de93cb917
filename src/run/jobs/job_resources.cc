#include "trainer/run/jobs/job_resources.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/command.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/run/device.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

// Returns how many units hold the amount, at least 1. The result is limited to a million.
int UnitsFor(double amount, double unit) {
  return static_cast<int>(std::clamp(std::ceil(amount / unit), 1.0, 1e6));
}

// Returns one core per 50 million multiply-adds of a forward pass, from 1 to 32. With less work per
// core, the cores would wait for each other most of the time.
int UsefulCores(int64_t macs) { return std::min(UnitsFor(static_cast<double>(macs), 5e7), 32); }

// Returns the memory of `ranks` ranks: for each the estimate, a quarter more for what the estimate
// does not count, and half a GiB for the program, its libraries and batches.
int MemoryGiB(const std::vector<MemoryItem>& items, int ranks) {
  double bytes = 0.5 * static_cast<double>(kGiB);
  for (const MemoryItem& item : items) bytes += 1.25 * static_cast<double>(item.bytes);
  return UnitsFor(bytes * ranks, static_cast<double>(kGiB));
}

// Returns the seconds that a snapshot takes on a file system of 50 MB/s, or longer if writing and
// reading back a file in the folder of the snapshots is slower than that now.
double SnapshotSeconds(const std::string& prefix, const MemoryEstimate& memory) {
  constexpr double kBytesPerSecond = 50e6;
  constexpr size_t kMaxProbe = size_t{32} << 20;
  using Clock = std::chrono::steady_clock;
  const size_t bytes = memory.weights * (1 + static_cast<size_t>(memory.states_per_weight));
  const double usual = 1 + static_cast<double>(bytes) / kBytesPerSecond;
  if (!std::filesystem::is_directory(FolderOf(prefix))) return usual;
  const std::string probe(std::clamp<size_t>(bytes, 1, kMaxProbe), '\x5a');
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

// Requests as many cores as the net keeps busy (`useful`) if the user names none: at least one for
// each of the `processes` of a rank, but not more than a node has. Throws kUsage if the user names
// more cores or ranks than the largest node has.
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

std::chrono::seconds ParseJobTime(const std::string& text) {
  const auto time = ParseWallTime(text);
  if (!time || time->count() < 60) {
    throw Error(ErrorCode::kUsage,
                Join("--time=", EscapeControl(text),
                     ": not a time of at least one minute; write 4:00:00, 1-12:00:00 (a day and a "
                     "half), 90 (minutes), 90m or 1h30m"));
  }
  return *time;
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

int WarningSeconds(std::chrono::seconds limit, double snapshot) {
  const double least = std::ceil(5 + 2 * snapshot);
  const double wished = std::max(60.0, least + 30);
  return static_cast<int>(
      std::max(least, std::min(wished, static_cast<double>(limit.count()) / 8)));
}

void EstimateJobResources(const SolverSpec& spec, JobSpec* job, int processes) {
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

void DescribeRun(const SolverSpec& spec, JobSpec* job) {
  const caffe::SolverParameter& proto = spec.proto;
  job->name = JobName(job->solver);
  job->snapshot_prefix = proto.snapshot_prefix();
  const bool wants_gpu =
      proto.has_solver_mode() && proto.solver_mode() == caffe::SolverParameter::GPU;
  job->gpu = job->gpu || wants_gpu;
  if (SavesSnapshots(proto)) CheckWritable(proto.snapshot_prefix(), 0);
  if (job->system == JobSystem::kSlurm) job->node_cores = CoresOfLargestNode(job->partition);
  EstimateJobResources(spec, job);
}

}  // namespace trainer
