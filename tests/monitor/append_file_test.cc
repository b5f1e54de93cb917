// Tests files that grow during a run and never stop it.

#include "observers/append_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/faulty_ops.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Writes each record at once, also after a failure.
constexpr AppendFile::Limits kAtOnce = {std::chrono::milliseconds(0), std::chrono::milliseconds(0),
                                        100};

class AppendFileTest : public testing::Test {
 protected:
  TempFolder folder_;
  const std::string path_ = folder_ / "run/metrics.jsonl";
  FaultyOps ops_;
  LogCollector log_;
};

TEST_F(AppendFileTest, MakesItsFolderAndAppends) {
  AppendFile(path_).Add("one\n");
  AppendFile(path_).Add("two\n");
  EXPECT_EQ(ReadText(path_), "one\ntwo\n");
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(AppendFileTest, ManyRecordsAreOneWrite) {
  AppendFile file(path_, {std::chrono::hours(1), std::chrono::hours(1), 1 << 20}, ops_);
  for (int i = 0; i < 1000; ++i) file.Add("line\n");
  EXPECT_EQ(ReadText(path_), "line\n");  // the first line; the others wait
  EXPECT_EQ(file.waiting(), 999u * 5);
  file.Flush();
  EXPECT_EQ(file.waiting(), 0u);
  EXPECT_EQ(ReadText(path_).size(), 5000u);
}

TEST_F(AppendFileTest, AFullDiskIsOneWarningAndNothingIsLostOnceThereIsRoom) {
  ops_.errno_value = ENOSPC;
  AppendFile file(path_, kAtOnce, ops_);
  file.Add("one\n");
  ops_.fail_at = ops_.calls;
  ops_.and_after = true;
  file.Add("two\n");
  file.Add("three\n");
  EXPECT_EQ(ReadText(path_), "one\n");
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("No space left on device. The run continues")));
  ops_.fail_at = -1;
  file.Add("four\n");
  EXPECT_EQ(ReadText(path_), "one\ntwo\nthree\nfour\n");
  EXPECT_THAT(log_.lines,
              ElementsAre(HasSubstr("No space left"), HasSubstr("can be written again")));
}

TEST_F(AppendFileTest, AFolderThatCannotBeMadeIsOneWarning) {
  AppendFile file(folder_ / "no/such/folder/file", kAtOnce, ops_);
  file.Add("one\n");
  file.Add("two\n");
  EXPECT_EQ(file.waiting(), 8u);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("No such file or directory. The run continues")));
  std::filesystem::create_directories(folder_ / "no/such/folder");
  file.Flush();
  EXPECT_EQ(ReadText(folder_ / "no/such/folder/file"), "one\ntwo\n");
}

TEST_F(AppendFileTest, WhatDoesNotFitInMemoryIsCountedAndSaid) {
  ops_.errno_value = ENOSPC;
  ops_.fail_at = 0;
  ops_.and_after = true;
  AppendFile file(path_, kAtOnce, ops_);
  for (int i = 0; i < 12; ++i) file.Add("0123456789");  // only ten entries fit
  EXPECT_EQ(file.waiting(), 100u);
  EXPECT_EQ(file.lost(), 2);
  ops_.fail_at = -1;
  std::filesystem::create_directories(folder_ / "run");
  file.Flush();
  EXPECT_EQ(ReadText(path_).size(), 100u);
  EXPECT_THAT(log_.lines.back(), HasSubstr("2 entries are lost"));
}

}  // namespace
}  // namespace trainer
