// Folders for a last snapshot, and the commands that resume a run.

#include "rescue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(RescueTest, TriesTheGivenFolderThenThoseOfTheJob) {
  SchedulerAccess access;
  access.variable = [](const char* name) {
    return std::string(name) == "TMPDIR" ? "/tmp/job" : "";
  };
  EXPECT_THAT(RescueFolders("/given", access), ElementsAre("/given", "/tmp/job"));
  EXPECT_THAT(RescueFolders("", access), ElementsAre("/tmp/job"));
}

TEST(RescueTest, TheGivenFolderMustExist) {
  const TempFolder folder;
  EXPECT_THAT(ErrorOf([&] { MakeRescueOptions(folder / "none"); }),
              Pair(ErrorCode::kCannotCreate, HasSubstr("(--rescue_dir) does not exist")));
  EXPECT_THAT(MakeRescueOptions(folder.path()).folders[0], folder.path());
}

TEST(RescueTest, AsksSlurmHowLongAProcessLivesAfterSigterm) {
  SchedulerAccess access;
  access.run = [](const std::vector<std::string>&, std::chrono::milliseconds) {
    return CommandResult{0, "KillOnBadExit = 0\nKillWait                = 45 sec\n", ""};
  };
  access.variable = [](const char*) { return std::string(); };
  EXPECT_EQ(MakeRescueOptions("", access).kill_wait().time, std::chrono::seconds(0));
  access.variable = [](const char* name) { return std::string(name) == "SLURM_JOB_ID" ? "7" : ""; };
  EXPECT_EQ(MakeRescueOptions("", access).kill_wait().time, std::chrono::seconds(45));
  EXPECT_EQ(ReadKillWait("no such line"), std::chrono::seconds(30)) << "Slurm's default";
}

TEST(ResumeCommandTest, ReplacesTheStartOfTheCommand) {
  const std::vector<std::string> words = {"trainer",  "train",        "--solver=a b.prototxt",
                                          "--resume", "auto",         "-weights=x.caffemodel",
                                          "--gpu=0",  "--snapshot=y", "--reset",
                                          "fc8"};
  EXPECT_EQ(ResumeCommand(words, "s_iter_2.solverstate"),
            "trainer train '--solver=a b.prototxt' --gpu=0 --snapshot=s_iter_2.solverstate");
  EXPECT_EQ(AutoResumeCommand(words),
            "trainer train '--solver=a b.prototxt' --gpu=0 --resume=auto");
}

}  // namespace
}  // namespace trainer
