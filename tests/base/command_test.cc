#include "trainer/base/process/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

TEST(CommandTest, GivesWhatItWrote) {
  const CommandResult result = RunCommand({"echo", "a b", "c"}, minutes(4));
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "a b c\n");
}

TEST(CommandTest, NamesWhatIsNotThere) {
  EXPECT_EQ(RunCommand({"no_such_program_here"}, minutes(4)).problem,
            "no_such_program_here cannot be started: No such file or directory");
}

TEST(CommandTest, TellsTheCodeAndTheFirstLineOfAFailure) {
  const CommandResult result =
      RunCommand({"sh", "-c", "echo wrong >&2; echo more; exit 3"}, minutes(4));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.problem, "sh exited with code 3: wrong");
}

TEST(CommandTest, KillsWhatDoesNotAnswerInTime) {
  EXPECT_EQ(RunCommand({"sleep", "1000"}, milliseconds(200)).problem,
            "sleep did not answer within 0.2 s");
}

TEST(CommandTest, KillsWhatClosesItsOutputAndGoesOn) {
  EXPECT_EQ(RunCommand({"sh", "-c", "exec >&- 2>&-; exec sleep 1000"}, milliseconds(300)).problem,
            "sh did not answer within 0.3 s");
}

TEST(CommandTest, KeepsOneMebibyteOfWhatItWrote) {
  const CommandResult result = RunCommand({"sh", "-c", "head -c 3000000 /dev/zero"}, minutes(4));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.size(), size_t{1} << 20);
}

}  // namespace
}  // namespace trainer
