// Runs this test program as its own child.

#include "trainer/base/process/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "support/temp_folder.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// These run only in a child, started by the tests below.
TEST(ChildProcessDeathTest, DISABLED_WaitsForASignal) {
  for (;;) pause();
}
TEST(ChildProcessDeathTest, DISABLED_KillsItself) { raise(SIGKILL); }

std::vector<std::string> Child(const std::string& test) {
  return {"--gtest_also_run_disabled_tests",
          "--gtest_filter=ChildProcessDeathTest.DISABLED_" + test};
}

TEST(ChildProcessTest, ReturnsTheExitCodeAndAppendsTheOutputToTheLog) {
  const TempFolder folder;
  const std::string log = folder.Write("log", "before\n");
  ChildProcess child;
  EXPECT_EQ(child.Run({"--gtest_list_tests"}, log).code, 0);
  EXPECT_THAT(ReadText(log), testing::StartsWith("before\n"));
  EXPECT_THAT(ReadText(log), HasSubstr("ReturnsTheExitCodeAndAppendsTheOutputToTheLog"));
  EXPECT_EQ(child.Run({"--gtest_filter=ChildProcessTest.None", "--gtest_fail_fast"}, log).signal,
            0);
}

TEST(ChildProcessTest, NamesTheSignalThatEndedTheChild) {
  const TempFolder folder;
  ChildProcess child;
  const ExitStatus status = child.Run(Child("KillsItself"), folder / "log");
  EXPECT_EQ(status.signal, SIGKILL);
  EXPECT_FALSE(status.forwarded);
}

TEST(ChildProcessTest, ForwardsASignal) {
  const TempFolder folder;
  ChildProcess child;
  EXPECT_EQ(child.PendingStop(), 0);
  raise(SIGHUP);
  EXPECT_EQ(child.PendingStop(), 0) << "SIGHUP does not ask for the end";
  raise(SIGTERM);
  EXPECT_EQ(child.PendingStop(), SIGTERM);
  const ExitStatus status = child.Run(Child("WaitsForASignal"), folder / "log");
  EXPECT_THAT(status.signal, testing::AnyOf(SIGHUP, SIGTERM));
  EXPECT_TRUE(status.forwarded);
  // A signal that arrived after the child's end must not end this process.
  const timespec none = {0, 0};
  sigset_t rest;
  sigemptyset(&rest);
  sigaddset(&rest, SIGHUP);
  sigaddset(&rest, SIGTERM);
  while (sigtimedwait(&rest, nullptr, &none) > 0) {
  }
}

TEST(ChildProcessTest, ALogThatCannotBeOpenedIsAnError) {
  const TempFolder folder;
  ChildProcess child;
  EXPECT_THROW(child.Run({"--gtest_list_tests"}, folder / "absent/log"), Error);
}

}  // namespace
}  // namespace trainer
