#include "lock_owner.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "trainer/base/process/host_info.h"
#include "trainer/base/process/process_life.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns what a symbolic link names, or "" if it cannot be read.
std::string LinkTarget(const char* path) {
  std::array<char, 256> target = {};
  const ssize_t length = readlink(path, target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<size_t>(length)) : std::string();
}

// Returns the job's number under Slurm, PBS, LSF or Grid Engine; "" outside of a job.
std::string BatchJob() {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"}) {
    const char* job = std::getenv(variable);
    if (job != nullptr && *job != '\0') return job;
  }
  return "";
}

// Returns a value for the lock file: one line of at most 200 bytes that a terminal may show.
std::string OneLine(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return EscapeControl(text.substr(0, 200));
}

}  // namespace

LockOwner LockOwner::Self() {
  LockOwner owner;
  owner.host = OneLine(HostName());
  owner.machine = OneLine(
      Join(FirstLine("/proc/sys/kernel/random/boot_id"), " ", LinkTarget("/proc/self/ns/pid")));
  owner.pid = getpid();
  owner.started = ProcessStart(owner.pid);
  owner.job = OneLine(BatchJob());
  std::random_device random;
  owner.token = Join(random(), "-", random());
  return owner;
}

LockOwner LockOwner::Parse(const std::string& text) {
  LockOwner owner;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(0, equals), value = OneLine(line.substr(equals + 1));
    if (name == "host") owner.host = value;
    if (name == "machine") owner.machine = value;
    if (name == "pid") std::from_chars(value.data(), value.data() + value.size(), owner.pid);
    if (name == "started") owner.started = value;
    if (name == "job") owner.job = value;
    if (name == "token") owner.token = value;
  }
  return owner;
}

std::string LockOwner::Text() const {
  return Join("host=", host, "\nmachine=", machine, "\npid=", pid, "\nstarted=", started,
              "\njob=", job, "\ntoken=", token, "\n");
}

std::string LockOwner::Describe() const {
  if (pid == 0) return "an unknown process";
  return Join("process ", pid, " on host ", host, job.empty() ? "" : " (batch job " + job + ")");
}

LockOwner::Life LockOwner::CheckLiveness() const {
  const LockOwner self = Self();
  if (pid <= 0 || machine != self.machine || host != self.host) return Life::kUnknown;
  if (ProcessHasEnded(pid)) return Life::kGone;
  const std::string start = ProcessStart(pid);
  if (start.empty() || started.empty()) return Life::kRuns;
  return start != started ? Life::kGone : Life::kRuns;
}

}  // namespace trainer
