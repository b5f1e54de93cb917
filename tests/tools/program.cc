#include "program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>

namespace trainer {
namespace {

constexpr int kPatienceMs = 300'000;

// Runs never use the user's cache. Runs under mpirun do not detect leaks, because Open MPI never
// frees some of its memory.
char g_no_cache[] = "XDG_CACHE_HOME=/dev/null";
char g_no_leaks[] = "ASAN_OPTIONS=strict_string_checks=1:detect_leaks=0";

// The tests may run in a job of a batch system, to which the runs that they start do not belong.
void LeaveBatchJob() {
  constexpr std::array kOfJobs = {"SLURM_", "PBS_", "PMI_", "PMIX_", "OMPI_COMM_WORLD_"};
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool of_job = std::ranges::any_of(
        kOfJobs, [&](std::string_view start) { return text.starts_with(start); });
    if (of_job) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

// Runs in the child, so it may only make calls that are allowed after fork.
[[noreturn]] void BecomeProgram(char* const* argv, const RunOptions& options, int out, int err) {
  if (!options.stdout_path.empty())
    out = open(options.stdout_path.c_str(), O_WRONLY | O_CREAT, 0666);
  if (!options.stderr_path.empty())
    err = open(options.stderr_path.c_str(), O_WRONLY | O_CREAT, 0666);
  const int null = open("/dev/null", O_RDONLY);
  if (chdir(options.folder.c_str()) != 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
      dup2(err, 2) < 0) {
    _exit(125);
  }
  const rlimit limit = {options.memory_limit, options.memory_limit};
  if (options.memory_limit > 0 && setrlimit(RLIMIT_AS, &limit) != 0) _exit(125);
  const rlimit file_limit = {options.file_limit, options.file_limit};
  if (options.file_limit > 0 && setrlimit(RLIMIT_FSIZE, &file_limit) != 0) _exit(125);
  if (options.as_nobody && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(125);
  putenv(g_no_cache);
  if (!options.launcher.empty()) putenv(g_no_leaks);
  for (const std::string& variable : options.env) putenv(const_cast<char*>(variable.c_str()));
  execvp(argv[0], argv);
  _exit(126);
}

// Appends available input. Returns false at its end and closes the descriptor.
bool Append(int* fd, std::string* to) {
  std::array<char, 65536> buffer;
  const ssize_t bytes = read(*fd, buffer.data(), buffer.size());
  if (bytes > 0) {
    to->append(buffer.data(), static_cast<size_t>(bytes));
    return true;
  }
  close(*fd);
  *fd = -1;
  return false;
}

}  // namespace

std::vector<std::string> Outcome::ErrLines() const {
  std::vector<std::string> lines;
  std::istringstream text(err);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Outcome::Errors() const {
  std::vector<std::string> errors;
  for (const std::string& line : ErrLines()) {
    if (line.starts_with("error: ")) errors.push_back(line.substr(7));
  }
  return errors;
}

RunningProgram::RunningProgram(const std::vector<std::string>& arguments,
                               const RunOptions& options) {
  std::vector<std::string> words = options.launcher;
  words.push_back(options.emulated_gpu ? TRAINER_EMULATED : TRAINER_PROGRAM);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  LeaveBatchJob();
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "no pipes";
    return;
  }
  constexpr int kPage = 4096;
  if (options.in_step) {
    EXPECT_GE(fcntl(err[1], F_SETPIPE_SZ, kPage), 0);
  }
  pid_ = fork();
  if (pid_ == 0) BecomeProgram(argv.data(), options, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

RunningProgram::~RunningProgram() {
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool RunningProgram::ReadSome() {
  std::array<pollfd, 2> fds = {{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (out_ < 0 && err_ < 0) return false;
  if (poll(fds.data(), fds.size(), kPatienceMs) <= 0) {
    ADD_FAILURE() << "the program says nothing more; so far:\n" << outcome_.err;
    kill(pid_, SIGKILL);
    return false;
  }
  if (fds[0].revents != 0) Append(&out_, &outcome_.out);
  if (fds[1].revents != 0) Append(&err_, &outcome_.err);
  return true;
}

std::string RunningProgram::FindLine(const std::string& text) {
  for (;;) {
    for (size_t end; (end = outcome_.err.find('\n', seen_)) != std::string::npos;) {
      const std::string line = outcome_.err.substr(seen_, end - seen_);
      seen_ = end + 1;
      if (line.find(text) != std::string::npos) return line;
    }
    if (err_ < 0 || !ReadSome()) return "";
  }
}

std::string RunningProgram::WaitForLine(const std::string& text) {
  std::string line = FindLine(text);
  if (line.empty()) ADD_FAILURE() << "no line with '" << text << "' in:\n" << outcome_.err;
  return line;
}

void RunningProgram::Signal(int signal) const { kill(pid_, signal); }

void RunningProgram::CloseStderr() {
  close(err_);
  err_ = -1;
}

Outcome RunningProgram::Wait() {
  while (ReadSome()) {
  }
  int status = 0;
  if (pid_ > 0) waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return outcome_;
}

bool Await(const std::function<bool()>& is_so) {
  for (int i = 0; i < kPatienceMs / 10; ++i) {
    if (is_so()) return true;
    usleep(10'000);
  }
  return false;
}

// The state follows the name, which may contain any character.
bool HasEnded(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  if (!std::getline(file, stat, '\0')) return false;
  const size_t name = stat.rfind(") ");
  return name != std::string::npos && (stat[name + 2] == 'Z' || stat[name + 2] == 'X');
}

bool HasEmulatedGpu() { return TRAINER_EMULATED[0] != '\0'; }

std::string ProgramPath() { return TRAINER_PROGRAM; }

Outcome RunProgram(const std::vector<std::string>& arguments, const RunOptions& options) {
  return RunningProgram(arguments, options).Wait();
}

bool Finds(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

}  // namespace trainer
