// The fork launcher when the system refuses to start processes.

#include "trainer/parallel/launch.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "support/error_of.h"

namespace {

int g_forks_left = -1;  // before one fails; -1: none fails

}  // namespace

// Replaces the C library's function in this program.
extern "C" pid_t fork() noexcept {
  if (g_forks_left == 0) {
    errno = EAGAIN;
    return -1;
  }
  if (g_forks_left > 0) --g_forks_left;
  static const auto real = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "fork"));
  return real();
}

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Pair;

class LaunchTest : public testing::Test {
 protected:
  ~LaunchTest() override { g_forks_left = -1; }

  static bool IsBlocked(int signal) {
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, nullptr, &blocked);
    return sigismember(&blocked, signal) == 1;
  }
  // Returns the next descriptor that an open call would return.
  static int NextDescriptor() {
    const int fd = dup(0);
    close(fd);
    return fd;
  }
  static void ExpectNothingLeft(int next_descriptor) {
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGTSTP}) {
      EXPECT_FALSE(IsBlocked(signal)) << signal;
    }
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not reaped";
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(NextDescriptor(), next_descriptor) << "a descriptor is still open";
  }
};

TEST_F(LaunchTest, AForkThatFailsLeavesNoRanksAndNoBlockedSignals) {
  const int next = NextDescriptor();
  g_forks_left = 2;
  EXPECT_THAT(ErrorOf([] { LaunchRanks(3); }),
              Pair(ErrorCode::kResource, HasSubstr("cannot start rank 2: Resource temporarily")));
  ExpectNothingLeft(next);
}

TEST_F(LaunchTest, APipeThatFailsLeavesNoBlockedSignals) {
  const int next = NextDescriptor();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit two = {static_cast<rlim_t>(next) + 2, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &two), 0);
  const auto [code, message] = ErrorOf([] { LaunchRanks(2); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(code, ErrorCode::kResource);
  EXPECT_THAT(message, HasSubstr("cannot start ranks: Too many open files"));
  ExpectNothingLeft(next);
}

}  // namespace
}  // namespace trainer
