#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace trainer {

// Sanitizers report faults themselves, and treat the code after siglongjmp as a signal handler's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Runs body() in a child process. Returns the status that body() returns, or 128 + the signal that
// ended the child.
template <class Body>
int InChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Does the same with files limited to `bytes` bytes, as after `ulimit -f`.
template <class Body>
int InChildWithSizeLimit(rlim_t bytes, const Body& body) {
  return InChild([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 ? body() : 127;
  });
}

}  // namespace trainer
