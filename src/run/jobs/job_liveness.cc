#include "jobs/job_liveness.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>
#include <utility>

#include "trainer/base/process/command.h"
#include "trainer/base/process/process_life.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kPollInterval{2};    // between two checks of the slurmstepd
constexpr seconds kConfirmation{30};   // until the second question whether the job is over
constexpr seconds kAnswerTimeout{30};  // a busy queue answers late

// The fields of /proc/<pid>/stat, "<pid> (<name>) <state> <parent> ...". A name may contain blanks
// and ")".
struct ProcessLine {
  std::string name;
  pid_t parent = 0;
};

// Returns the name and the parent of a process; an empty name if it does not exist.
ProcessLine ReadProcessLine(pid_t pid) {
  std::ifstream file(Join("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t begin = line.find('('), end = line.rfind(')');
  if (begin == std::string::npos || end == std::string::npos) return {};
  ProcessLine process{line.substr(begin + 1, end - begin - 1), 0};
  std::istringstream rest(line.substr(end + 1));
  std::string state;
  rest >> state >> process.parent;
  return process;
}

// Returns the word after " = " in the line of qstat that starts with `name`.
std::string FieldOfQstat(const std::string& out, std::string_view name) {
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key, sign, value;
    if (words >> key >> sign >> value && key == name && sign == "=") return value;
  }
  return "";
}

bool IsOneOf(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Returns the nearest ancestor of this process that is a slurmstepd; 0 if there is none, as in a
// container that hides it.
pid_t FindStepDaemon() {
  constexpr int kMostAncestors = 100;
  pid_t pid = getpid();
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    const ProcessLine process = ReadProcessLine(pid);
    if (process.name == "slurmstepd") return pid;
    pid = process.parent;
  }
  return 0;
}

}  // namespace

bool JobIsOver(BatchSystem system, const CommandResult& answer) {
  const auto fails_with = [&](std::string_view words) {
    return answer.problem.find(words) != std::string::npos;
  };
  if (system == BatchSystem::kSlurm) {
    if (!answer.problem.empty()) return fails_with("Invalid job id");
    std::istringstream words(answer.out);
    std::string state;
    words >> state;
    return !IsOneOf(state, {"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "RESIZING",
                            "SIGNALING", "STAGE_OUT"});
  }
  if (system != BatchSystem::kPbs) return false;
  if (!answer.problem.empty()) return fails_with("Unknown Job") || fails_with("has finished");
  return IsOneOf(FieldOfQstat(answer.out, "job_state"), {"Q", "H", "F", "C", "X"});
}

JobLiveness::JobLiveness(seconds interval, SchedulerAccess access)
    : access_(std::move(access)),
      job_(CurrentJob(access_)),
      interval_(interval),
      daemon_(job_.system == BatchSystem::kSlurm ? FindStepDaemon() : 0),
      daemon_start_(daemon_ == 0 ? "" : ProcessStart(daemon_)),
      next_question_(steady_clock::now() + interval) {
  if (daemon_ != 0 || (interval_.count() > 0 && job_.system != BatchSystem::kNone)) {
    thread_ = std::thread([this] { Watch(); });
  }
}

JobLiveness::~JobLiveness() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JobLiveness::Watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPollInterval, [this] { return ends_; })) {
    lock.unlock();
    const std::string loss = FindLoss();
    lock.lock();
    if (loss.empty()) continue;
    if (ends_) return;
    LOG(WARNING) << job_.Name() << " no longer exists: " << EscapeControl(loss)
                 << ". The run saves a snapshot and exits";
    kill(getpid(), SIGTERM);
    return;
  }
}

std::string JobLiveness::FindLoss() {
  if (daemon_ != 0 && (ProcessHasEnded(daemon_) || ProcessStart(daemon_) != daemon_start_)) {
    return Join("its slurmstepd, process ", daemon_, ", has ended");
  }
  const auto now = steady_clock::now();
  if (interval_.count() == 0 || now < next_question_) return "";
  const bool slurm = job_.system == BatchSystem::kSlurm;
  const std::vector<std::string> question =
      slurm ? std::vector<std::string>{"squeue", "-h", "-j", job_.id, "-o", "%T"}
            : std::vector<std::string>{"qstat", "-f", job_.id};
  const bool over = JobIsOver(job_.system, access_.run(question, kAnswerTimeout));
  const bool again = was_over_ && over;
  was_over_ = over;
  next_question_ = now + (over ? std::min(kConfirmation, interval_) : interval_);
  return again ? Join(question[0], " reported twice that it is over or queued again") : "";
}

}  // namespace trainer
