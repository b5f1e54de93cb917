#include "trainer/base/process/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/base/text/text.h"

extern char** environ;

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kCommandMost = size_t{1} << 20;

// Starts the command with its output in a pipe. Returns its process, or 0 with the errno in
// `failure`. The command runs with no signal blocked and the default effect of SIGPIPE, whatever
// this program does with them.
pid_t Start(const std::vector<std::string>& words, int output, int* failure) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, pipe;
  sigemptyset(&none);
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  *failure = posix_spawnp(&process, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return *failure == 0 ? process : 0;
}

// Appends what comes through the pipe to `out`, up to kCommandMost bytes; the rest is read and
// dropped. Returns true at the end of the pipe, and false if it has not ended before `until`.
bool ReadAll(int pipe, Clock::time_point until, std::string* out) {
  char block[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    pollfd wait = {pipe, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = read(pipe, block, sizeof(block));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    out->append(block, std::min(static_cast<size_t>(got), kCommandMost - out->size()));
  }
}

// Returns the status as waitpid does, or -1 if the process did not end before `until` and was
// killed.
int WaitFor(pid_t process, Clock::time_point until) {
  for (int status = 0;;) {
    const pid_t got = waitpid(process, &status, WNOHANG);
    if (got == process) return status;
    if (got < 0 && errno != EINTR) return -1;
    if (Clock::now() >= until) break;
    usleep(2000);
  }
  kill(process, SIGKILL);
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) continue;
  return -1;
}

// Returns the first line, at most 300 bytes of it, with control characters escaped.
std::string FirstLine(const std::string& text) {
  return EscapeControl(text.substr(0, std::min<size_t>(text.find('\n'), 300)));
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  CommandResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.problem = Join(words[0], " cannot be started: ", std::strerror(errno));
    return result;
  }
  int failure = 0;
  const pid_t process = Start(words, ends[1], &failure);
  close(ends[1]);
  if (process == 0) {
    close(ends[0]);
    result.problem = Join(words[0], " cannot be started: ", std::strerror(failure));
    return result;
  }
  ReadAll(ends[0], until, &result.out);
  close(ends[0]);
  const int status = WaitFor(process, until);
  if (status == -1) {
    result.problem =
        Join(words[0], " did not answer within ", static_cast<double>(limit.count()) / 1000, " s");
  } else if (WIFEXITED(status)) {
    result.exit_code = WEXITSTATUS(status);
    if (result.exit_code == 0) return result;
    result.problem = Join(words[0], " exited with code ", result.exit_code);
    if (!result.out.empty()) result.problem += ": " + FirstLine(result.out);
  } else {
    result.problem = Join(words[0], " was killed by signal ", WTERMSIG(status));
  }
  return result;
}

}  // namespace trainer
