#include "trainer/run/jobs/scheduler.h"

#include <glog/logging.h>

#include <sstream>

#include "trainer/base/process/command.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kQueryTimeout{10};
constexpr seconds kRequeueTimeout{60};  // a busy controller needs longer

std::string Trimmed(const std::string& text) {
  constexpr char kBlanks[] = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Returns the time until SLURM_JOB_END_TIME if Slurm sets it, else the answer of squeue.
TimeLeft QuerySlurm(const std::string& id, const SchedulerAccess& access) {
  const std::optional<int64_t> end = ParseNumber<int64_t>(access.variable("SLURM_JOB_END_TIME"));
  if (end && *end > 0) {
    const auto now =
        std::chrono::duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch());
    return {seconds(*end) - now, "SLURM_JOB_END_TIME", ""};
  }
  const CommandResult result = access.run({"squeue", "-h", "-j", id, "-o", "%L"}, kQueryTimeout);
  if (!result.problem.empty()) return {std::nullopt, "squeue", result.problem};
  return ReadSqueue(result.out);
}

// Returns the answer of qstat. If it has no time, returns PBS_WALLTIME less the age of this
// process, as if the job had started with it.
TimeLeft QueryPbs(const std::string& id, const SchedulerAccess& access) {
  const CommandResult result = access.run({"qstat", "-f", id}, kQueryTimeout);
  const TimeLeft answer = result.problem.empty() ? ReadQstat(result.out)
                                                 : TimeLeft{std::nullopt, "qstat", result.problem};
  if (answer.time) return answer;
  const std::optional<int64_t> limit = ParseNumber<int64_t>(access.variable("PBS_WALLTIME"));
  if (!limit || *limit <= 0) return answer;
  const auto used = std::chrono::duration_cast<seconds>(access.now() - LoadTime());
  return {seconds(*limit) - used, "PBS_WALLTIME, assuming that the job started with this run", ""};
}

}  // namespace

std::string SchedulerJob::Name() const {
  return Join(system == BatchSystem::kSlurm ? "Slurm job " : "PBS job ", EscapeControl(id));
}

SchedulerJob CurrentJob(const SchedulerAccess& access) {
  // A task of an array has both numbers; its SLURM_JOB_ID may name the whole array.
  const std::string array = access.variable("SLURM_ARRAY_JOB_ID");
  const std::string task = access.variable("SLURM_ARRAY_TASK_ID");
  if (!array.empty() && !task.empty()) return {BatchSystem::kSlurm, Join(array, "_", task)};
  const std::pair<BatchSystem, const char*> known[] = {{BatchSystem::kSlurm, "SLURM_JOB_ID"},
                                                       {BatchSystem::kSlurm, "SLURM_JOBID"},
                                                       {BatchSystem::kPbs, "PBS_JOBID"}};
  for (const auto& [system, name] : known) {
    const std::string id = access.variable(name);
    if (!id.empty()) return {system, id};
  }
  return {};
}

TimeLeft ReadSqueue(const std::string& out) {
  const std::string text = Trimmed(out);
  const std::optional<seconds> time = ParseWallTime(text);
  if (time) return {time, "squeue", ""};
  if (text == "UNLIMITED" || text == "NOT_SET") return {std::nullopt, "squeue", ""};
  return {std::nullopt, "squeue",
          Join("squeue answers '", EscapeControl(text.substr(0, 100)), "', which is not a time")};
}

// Uses Torque's remaining seconds if the output has them. PBS has the limit and the time used,
// which is some minutes old, so the result may be a little too long.
TimeLeft ReadQstat(const std::string& out) {
  std::optional<seconds> limit, used;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const size_t sign = line.find(" = ");
    if (sign == std::string::npos) continue;
    const std::string name = Trimmed(line.substr(0, sign)), value = Trimmed(line.substr(sign + 3));
    if (name == "Walltime.Remaining") {
      const std::optional<int64_t> left = ParseNumber<int64_t>(value);
      if (left) return {seconds(*left), "qstat", ""};
    }
    if (name == "Resource_List.walltime") limit = ParseWallTime(value);
    if (name == "resources_used.walltime") used = ParseWallTime(value);
  }
  if (limit) return {*limit - used.value_or(seconds(0)), "qstat", ""};
  return {std::nullopt, "qstat", "qstat does not show the walltime of the job"};
}

TimeLeft QueryTimeLeft(const SchedulerJob& job, const SchedulerAccess& access) {
  switch (job.system) {
    case BatchSystem::kSlurm:
      return QuerySlurm(job.id, access);
    case BatchSystem::kPbs:
      return QueryPbs(job.id, access);
    case BatchSystem::kNone:
      break;
  }
  return {};
}

void RequeueJob(const SchedulerAccess& access) {
  const SchedulerJob job = CurrentJob(access);
  if (job.system != BatchSystem::kSlurm) {
    LOG(WARNING) << "--requeue: this is not a Slurm job (SLURM_JOB_ID is not set), so no job is "
                    "queued again; to resume, run the same command again with --resume=auto";
    return;
  }
  const CommandResult state = access.run({"squeue", "-h", "-j", job.id, "-o", "%T"}, kQueryTimeout);
  const std::string word = Trimmed(state.out);
  if (state.problem.empty() && word != "RUNNING") {
    LOG(INFO) << EscapeControl(
        Join("--requeue: ", job.Name(), " is ", word.empty() ? "over" : word,
             " already (it was cancelled, or Slurm queued it again): --requeue does nothing"));
    return;
  }
  const CommandResult result = access.run({"scontrol", "requeue", job.id}, kRequeueTimeout);
  if (result.problem.empty()) {
    LOG(INFO) << "--requeue: " << job.Name() << " is queued again";
    return;
  }
  LOG(WARNING) << EscapeControl(Join("--requeue: ", job.Name(),
                                     " was not queued again: ", result.problem,
                                     ". Submit it again; with --resume=auto it ", "resumes"));
}

}  // namespace trainer
