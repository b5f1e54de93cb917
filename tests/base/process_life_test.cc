#include "trainer/base/process/process_life.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trainer {
namespace {

TEST(ProcessLifeTest, AProcessThatIsNotReapedHasEnded) {
  EXPECT_FALSE(ProcessHasEnded(getpid()));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(ProcessHasEnded(child));  // a zombie
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(ProcessHasEnded(child));
}

}  // namespace
}  // namespace trainer
