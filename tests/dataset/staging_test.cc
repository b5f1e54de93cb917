#include "trainer/dataset/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "data/test_data.h"
#include "support/file_size_limit.h"
#include "support/in_child.h"
#include "trainer/data/staged.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;

class StagingTest : public testing::TestWithParam<const char*> {
 protected:
  StagingTest() {
    WriteDb(GetParam(), source_, NumberedRecords(50));
    std::filesystem::create_directory(options_.folder);
  }
  std::string Private() const {
    return options_.folder + "/trainer-stage-" + std::to_string(geteuid());
  }
  std::vector<std::string> Staged() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(Private(), none)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  void ExpectRead(const std::string& path) {
    const auto cursor = OpenCursor(GetParam(), path);
    int count = 1;
    while (!cursor->Next()) ++count;
    EXPECT_EQ(count, 50);
  }

  TempFolder folder_;
  std::string source_ = folder_ / "train_db";
  StagingOptions options_{folder_ / "local"};
};
INSTANTIATE_TEST_SUITE_P(Of, StagingTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(StagingTest, ACopyIsReadAndGoesWithItsLastUser) {
  {
    const auto copy = StageDatabase(source_, options_);
    ASSERT_NE(copy, nullptr);
    EXPECT_THAT(copy->path(), testing::StartsWith(Private() + "/train_db-"));
    struct stat facts {};
    ASSERT_EQ(stat(Private().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700u);
    ExpectRead(copy->path());
    auto other = StageDatabase(source_, options_);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->path(), copy->path());
    other.reset();
    EXPECT_TRUE(std::filesystem::exists(copy->path()));
  }
  EXPECT_FALSE(std::filesystem::exists(Private()));
}

TEST_P(StagingTest, OneOfManyCopiesAndTheOthersWait) {
  const LogLines log;
  std::vector<std::unique_ptr<StagedCopy>> copies(6);
  {
    std::vector<std::jthread> ranks;
    for (auto& copy : copies) ranks.emplace_back([&] { copy = StageDatabase(source_, options_); });
  }
  for (const auto& copy : copies) {
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(copy->path(), copies[0]->path());
  }
  const std::vector<std::string> lines = log.Get();
  EXPECT_EQ(std::ranges::count_if(
                lines, [](const std::string& line) { return line.starts_with("Copied "); }),
            1);
}

TEST_P(StagingTest, AKeptCopyIsUsedAgainUntilTheDatabaseChanges) {
  options_.keep = true;
  std::string first;
  {
    const auto copy = StageDatabase(source_, options_);
    ASSERT_NE(copy, nullptr);
    first = copy->path();
  }
  EXPECT_TRUE(std::filesystem::exists(first));
  const LogLines log;
  EXPECT_EQ(StageDatabase(source_, options_)->path(), first);
  EXPECT_THAT(log.Get(), testing::Not(Contains(testing::StartsWith("Copied "))));
  std::filesystem::remove_all(source_);
  WriteDb(GetParam(), source_, NumberedRecords(49));
  EXPECT_NE(StageDatabase(source_, options_)->path(), first);
}

TEST_P(StagingTest, WhatAKilledCopyLeftIsMadeAnew) {
  options_.keep = true;
  const std::string path = StageDatabase(source_, options_)->path();
  // As if it had been killed on the way: a part under the hidden name, nothing under the right one.
  std::filesystem::remove(path + "/.complete");
  std::filesystem::rename(path, path + ".partial");
  const auto copy = StageDatabase(source_, options_);
  ASSERT_NE(copy, nullptr);
  ExpectRead(copy->path());
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_P(StagingTest, ACopyThatLostAFileIsMadeAnew) {
  options_.keep = true;
  const std::string path = StageDatabase(source_, options_)->path();
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().filename() != ".complete") std::filesystem::remove(entry.path());
  }
  const auto copy = StageDatabase(source_, options_);
  ASSERT_NE(copy, nullptr);
  ExpectRead(copy->path());
}

TEST_P(StagingTest, AFullDiskIsAWarningAndLeavesNothing) {
  const LogLines log;
  EXPECT_EQ(InChild([&] {
              const FileSizeLimit limit(100);
              return StageDatabase(source_, options_) == nullptr && Staged().empty() ? 0 : 1;
            }),
            0);
}

TEST_P(StagingTest, AFolderThatIsNotThereIsAWarning) {
  options_.folder = folder_ / "none";
  const LogLines log;
  EXPECT_EQ(StageDatabase(source_, options_), nullptr);
  EXPECT_THAT(log.Get(),
              Contains(testing::AllOf(HasSubstr("not copied to this machine (cannot make"),
                                      HasSubstr("it is read where it lies"))));
}

TEST_P(StagingTest, AFolderThatOthersMayEnterOrALinkIsRefused) {
  std::filesystem::create_directory(Private());
  chmod(Private().c_str(), 0755);
  EXPECT_THAT(Catch([&] { StageDatabase(source_, options_); }),
              Refuses(ErrorCode::kNoPermission, "does not belong to this user alone"));
  std::filesystem::remove(Private());
  std::filesystem::create_directory(folder_ / "elsewhere");
  chmod((folder_ / "elsewhere").c_str(), 0700);
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", Private());
  EXPECT_THAT(Catch([&] { StageDatabase(source_, options_); }),
              Refuses(ErrorCode::kNoPermission, "does not belong to this user alone"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "elsewhere"));
}

TEST_P(StagingTest, AutoLeavesADatabaseOfThisMachineWhereItLies) {
  options_.folder = "auto";
  const LogLines log;
  const auto copy = StageDatabase(source_, options_);
  if (copy != nullptr) GTEST_SKIP() << "the tests' folder is on no disk of this machine";
  EXPECT_THAT(log.Get(), Contains(HasSubstr("lies on this machine (")));
}

TEST(ReadInsteadTest, ACopyIsReadUnderEveryNameOfTheDatabase) {
  const TempFolder folder;
  WriteDb("LMDB", folder / "db", NumberedRecords(3));
  WriteDb("LMDB", folder / "copy", NumberedRecords(4));
  std::filesystem::create_directory_symlink(folder / "db", folder / "link");
  EXPECT_EQ(OpenCursor("LMDB", folder / "db")->Count(), 3);
  ReadInstead(folder / "db", folder / "copy");
  EXPECT_EQ(OpenCursor("LMDB", folder / "db/")->Count(), 4);
  EXPECT_EQ(OpenCursor("LMDB", folder / "link")->Count(), 4);
  EXPECT_EQ(OpenCursor("LMDB", folder / "copy")->Count(), 4);
}

}  // namespace
}  // namespace trainer
