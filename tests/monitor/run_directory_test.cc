// Tests the description of a run in its folder.

#include "trainer/monitor/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(RunDirectoryTest, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const RunDirectory run(folder.path());
  RunInfo info;
  info.command = {"trainer", "train", "--solver=a \"b\".prototxt"};
  info.folder = "/somewhere";
  info.snapshot_prefix = "/somewhere/snap";
  info.saves = true;
  info.host = "node7";
  info.process = 1234567;
  info.started = 1700000000;
  info.ranks = 4;
  info.memory_bytes = size_t{1} << 40;
  info.libraries = {{"HDF5", "1.10.8"}, {"LMDB", "0.9.24"}};
  run.WriteInfo(info);
  EXPECT_THAT(ReadText(folder / "environment.json"), Not(HasSubstr("batch_job")));
  const RunInfo read = run.ReadInfo();
  EXPECT_THAT(read.command, ElementsAre("trainer", "train", "--solver=a \"b\".prototxt"));
  EXPECT_EQ(read.folder, "/somewhere");
  EXPECT_EQ(read.snapshot_prefix, "/somewhere/snap");
  EXPECT_TRUE(read.saves);
  EXPECT_EQ(read.host, "node7");
  EXPECT_EQ(read.process, 1234567);
  EXPECT_EQ(read.started, 1700000000);
  EXPECT_EQ(read.ranks, 4);
  EXPECT_EQ(read.memory_bytes, size_t{1} << 40);
  EXPECT_EQ(read.libraries, info.libraries);
  info.batch_job = "7";
  run.WriteInfo(info);
  EXPECT_EQ(run.ReadInfo().batch_job, "7");
}

TEST(RunDirectoryTest, AMissingOrDamagedFileGivesDefaults) {
  const TempFolder folder;
  const RunDirectory run(folder.path());
  EXPECT_EQ(run.ReadInfo().process, 0);
  folder.Write("environment.json", "{\"host\": \"node7\"");
  EXPECT_EQ(run.ReadInfo().host, "");
  folder.Write("environment.json", "{\"host\": \"node7\"}");
  EXPECT_EQ(run.ReadInfo().host, "node7");
  EXPECT_EQ(run.ReadInfo().folder, "");
}

}  // namespace
}  // namespace trainer
