#include "batch_job.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "trainer/base/error/error.h"
#include "trainer/base/process/command.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kPatience{10};         // with a question to the queue
constexpr seconds kRequeuePatience{60};  // with a controller that is busy

// What the environment says may be anything; clocks count nanoseconds.
constexpr seconds kLongest = std::chrono::hours(24 * 36500);

// Programs are loaded within milliseconds of their start.
const steady_clock::time_point g_start = steady_clock::now();

std::optional<int64_t> WholeOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string Trimmed(const std::string& text) {
  constexpr char kBlanks[] = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

TimeLeft AskSlurm(const std::string& id) {
  const std::optional<int64_t> end = WholeOf(EnvironmentVariable("SLURM_JOB_END_TIME"));
  if (end && *end > 0) {
    const auto now =
        std::chrono::duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch());
    return {seconds(*end) - now, "SLURM_JOB_END_TIME", ""};
  }
  const CommandResult result = RunCommand({"squeue", "-h", "-j", id, "-o", "%L"}, kPatience);
  if (!result.problem.empty()) return {std::nullopt, "squeue", result.problem};
  return ReadSqueue(result.out);
}

TimeLeft AskPbs(const std::string& id) {
  const CommandResult result = RunCommand({"qstat", "-f", id}, kPatience);
  const TimeLeft told = result.problem.empty() ? ReadQstat(result.out)
                                               : TimeLeft{std::nullopt, "qstat", result.problem};
  if (told.time) return told;
  const std::optional<int64_t> limit = WholeOf(EnvironmentVariable("PBS_WALLTIME"));
  if (!limit || *limit <= 0) return told;
  const auto used = std::chrono::duration_cast<seconds>(steady_clock::now() - g_start);
  return {seconds(*limit) - used, "PBS_WALLTIME, assuming that the job started with this run", ""};
}

std::optional<seconds> OfFlag(const Flags& flags) {
  const std::string& text = flags.Text("max_wall");
  const std::optional<seconds> time = ParseWallTime(text);
  if (!time || time->count() < 1) {
    throw Error(ErrorCode::kUsage,
                Join("--max_wall=", EscapeControl(text),
                     ": not a time; write 4:00:00, 1-12:00:00 (a day and a half), 90 (minutes), "
                     "90m, 1h30m or 45s; none means no limit"));
  }
  return time;
}

}  // namespace

std::string BatchJob::Name() const {
  return Join(system == BatchSystem::kSlurm ? "Slurm job " : "PBS job ", EscapeControl(id));
}

BatchJob ReadBatchJob(const std::function<const char*(const char*)>& get) {
  // The number of one task of an array is also that of the whole array: commands need both parts.
  const char* const array = get("SLURM_ARRAY_JOB_ID");
  const char* const task = get("SLURM_ARRAY_TASK_ID");
  if (array != nullptr && task != nullptr && *array != '\0' && *task != '\0') {
    return {BatchSystem::kSlurm, Join(array, "_", task)};
  }
  const std::pair<BatchSystem, const char*> known[] = {{BatchSystem::kSlurm, "SLURM_JOB_ID"},
                                                       {BatchSystem::kSlurm, "SLURM_JOBID"},
                                                       {BatchSystem::kPbs, "PBS_JOBID"}};
  for (const auto& [system, name] : known) {
    const char* const id = get(name);
    if (id != nullptr && *id != '\0') return {system, id};
  }
  return {};
}

BatchJob ReadBatchJob() {
  return ReadBatchJob([](const char* name) { return std::getenv(name); });
}

TimeLeft ReadSqueue(const std::string& out) {
  const std::string text = Trimmed(out);
  const std::optional<seconds> time = ParseWallTime(text);
  if (time) return {time, "squeue", ""};
  if (text == "UNLIMITED" || text == "NOT_SET") return {std::nullopt, "squeue", ""};
  return {std::nullopt, "squeue",
          Join("squeue answers '", EscapeControl(text.substr(0, 100)), "', which is not a time")};
}

// Torque tells what is left in seconds; PBS the limit and, some minutes late, what was used.
TimeLeft ReadQstat(const std::string& out) {
  std::optional<seconds> limit, used;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const size_t sign = line.find(" = ");
    if (sign == std::string::npos) continue;
    const std::string name = Trimmed(line.substr(0, sign)), value = Trimmed(line.substr(sign + 3));
    if (name == "Walltime.Remaining") {
      const std::optional<int64_t> left = WholeOf(value);
      if (left) return {seconds(*left), "qstat", ""};
    }
    if (name == "Resource_List.walltime") limit = ParseWallTime(value);
    if (name == "resources_used.walltime") used = ParseWallTime(value);
  }
  if (limit) return {*limit - used.value_or(seconds(0)), "qstat", ""};
  return {std::nullopt, "qstat", "qstat does not show the walltime of the job"};
}

TimeLeft AskQueue(const BatchJob& job) {
  switch (job.system) {
    case BatchSystem::kSlurm:
      return AskSlurm(job.id);
    case BatchSystem::kPbs:
      return AskPbs(job.id);
    case BatchSystem::kNone:
      break;
  }
  return {};
}

Flag MaxWallFlag() {
  return {.name = "max_wall",
          .value = "TIME",
          .help =
              "save a snapshot and exit with code 75 before the process has run for this long: "
              "4:00:00, 1-12:00:00, 90 (minutes), 90m; none: no limit. Default: the time limit of "
              "the Slurm or PBS job, if there is one"};
}

Flag RequeueFlag() {
  return {.name = "requeue",
          .kind = FlagKind::kSwitch,
          .help =
              "in a Slurm job: if the run stops early and its snapshot is saved, queue the job "
              "again (scontrol requeue)"};
}

void CheckMaxWall(const Flags& flags) {
  if (flags.Has("max_wall") && flags.Text("max_wall") != "none") OfFlag(flags);
}

std::optional<steady_clock::time_point> EndOfRun(const Flags& flags) {
  if (flags.Text("max_wall") == "none") return std::nullopt;
  const std::string then = "; the run saves a snapshot and exits with code 75 before that";
  if (flags.Has("max_wall")) {
    const seconds limit = *OfFlag(flags);
    LOG(INFO) << "Time limit: " << WallTimeText(limit)
              << " from the start of this process (--max_wall)" << then;
    return g_start + limit;
  }
  const BatchJob job = ReadBatchJob();
  if (job.system == BatchSystem::kNone) return std::nullopt;
  const TimeLeft left = AskQueue(job);
  if (left.time) {
    const seconds time = std::min(*left.time, kLongest);
    LOG(INFO) << "Time limit: " << WallTimeText(time) << " from now, the time left for "
              << job.Name() << " (" << left.source << ")" << then
              << "; --max_wall=none turns this off";
    return steady_clock::now() + time;
  }
  if (left.problem.empty()) {
    LOG(INFO) << "Time limit: none for " << job.Name() << " (" << left.source << ")";
  } else {
    LOG(WARNING) << EscapeControl(
        Join("The time left for ", job.Name(), " is unknown: ", left.problem,
             ". Give --max_wall, or make the queue send ", "SIGUSR1 before the job ends"));
  }
  return std::nullopt;
}

void RequeueJob() {
  const BatchJob job = ReadBatchJob();
  if (job.system != BatchSystem::kSlurm) {
    LOG(WARNING) << "--requeue: this is not a Slurm job (SLURM_JOB_ID is not set), so no job is "
                    "queued again; to resume, run the same command again with --resume=auto";
    return;
  }
  const CommandResult state = RunCommand({"squeue", "-h", "-j", job.id, "-o", "%T"}, kPatience);
  const std::string word = Trimmed(state.out);
  if (state.problem.empty() && word != "RUNNING") {
    LOG(INFO) << EscapeControl(
        Join("--requeue: ", job.Name(), " is ", word.empty() ? "over" : word,
             " already (it was cancelled, or Slurm queued it again): --requeue does nothing"));
    return;
  }
  const CommandResult result = RunCommand({"scontrol", "requeue", job.id}, kRequeuePatience);
  if (result.problem.empty()) {
    LOG(INFO) << "--requeue: " << job.Name() << " is queued again";
    return;
  }
  LOG(WARNING) << EscapeControl(Join("--requeue: ", job.Name(),
                                     " was not queued again: ", result.problem,
                                     ". Submit it again; with --resume=auto it ", "resumes"));
}

}  // namespace trainer
