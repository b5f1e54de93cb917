#include "trainer/base/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <system_error>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/output_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// Returns the signals that Run waits for: those to forward, and SIGCHLD, which reports the child's
// end.
sigset_t ForwardedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kForwarded) sigaddset(&set, signal);
  sigaddset(&set, SIGCHLD);
  return set;
}

// Replaces the forked child by this program. The child gets its own process group, so that it
// receives a signal of the terminal only once, from its parent.
[[noreturn]] void ExecuteProgram(const std::vector<std::string>& arguments, int log, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // the child does not outlive its parent
  if (getppid() != parent) _exit(static_cast<int>(ErrorCode::kStopped));
  const sigset_t signals = ForwardedSignals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  const int no_input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(no_input, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  std::vector<char*> words = {const_cast<char*>("trainer")};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  std::fprintf(stderr, "error: cannot start the run: %s\n", std::strerror(errno));
  _exit(static_cast<int>(ErrorCode::kResource));
}

}  // namespace

ChildProcess::ChildProcess() {
  const sigset_t signals = ForwardedSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

ChildProcess::~ChildProcess() {
  const sigset_t signals = ForwardedSignals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

ExitStatus ChildProcess::Run(const std::vector<std::string>& arguments, const std::string& log) {
  FileOps& ops = FileOps::Posix();
  const FileHandle file(ops, OpenOwnFile(log, O_WRONLY | O_CREAT | O_APPEND));
  if (file.get() < 0) ThrowFileError(FileUse::kOutput, "write a log", log, errno);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) ExecuteProgram(arguments, file.get(), parent);
  if (child < 0) {
    throw Error(ErrorCode::kResource,
                Join("cannot start a run: ", std::generic_category().message(errno)));
  }
  const sigset_t signals = ForwardedSignals();
  std::set<int> forwarded;
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status)) return {WEXITSTATUS(status), 0, false};
      return {0, WTERMSIG(status), forwarded.contains(WTERMSIG(status))};
    }
    const timespec time = {1, 0};
    const int signal = sigtimedwait(&signals, nullptr, &time);
    if (signal <= 0 || signal == SIGCHLD) continue;
    forwarded.insert(signal);
    kill(child, signal);
  }
}

int ChildProcess::PendingStop() const {
  sigset_t pending;
  sigpending(&pending);
  for (const int signal : kForwarded) {
    if (signal != SIGHUP && sigismember(&pending, signal) == 1) return signal;
  }
  return 0;
}

}  // namespace trainer
