#include "trainer/datasets/local_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "storage/test_data.h"
#include "support/file_size_limit.h"
#include "support/in_child.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/input/source.h"
#include "trainer/storage/path_redirects.h"

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
  LocalCopyOptions options_{folder_ / "local"};
};
INSTANTIATE_TEST_SUITE_P(Of, StagingTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(StagingTest, ACopyIsReadAndGoesWithItsLastUser) {
  {
    const auto copy = CopyDatabaseLocally(source_, options_);
    ASSERT_NE(copy, nullptr);
    EXPECT_THAT(copy->path(), testing::StartsWith(Private() + "/train_db-"));
    struct stat facts {};
    ASSERT_EQ(stat(Private().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700u);
    ExpectRead(copy->path());
    auto other = CopyDatabaseLocally(source_, options_);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->path(), copy->path());
    other.reset();
    EXPECT_TRUE(std::filesystem::exists(copy->path()));
  }
  EXPECT_FALSE(std::filesystem::exists(Private()));
}

TEST_P(StagingTest, OneOfManyCopiesAndTheOthersWait) {
  const LogLines log;
  std::vector<std::unique_ptr<LocalCopy>> copies(6);
  {
    std::vector<std::jthread> ranks;
    for (auto& copy : copies)
      ranks.emplace_back([&] { copy = CopyDatabaseLocally(source_, options_); });
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
    const auto copy = CopyDatabaseLocally(source_, options_);
    ASSERT_NE(copy, nullptr);
    first = copy->path();
  }
  EXPECT_TRUE(std::filesystem::exists(first));
  const LogLines log;
  EXPECT_EQ(CopyDatabaseLocally(source_, options_)->path(), first);
  EXPECT_THAT(log.Get(), testing::Not(Contains(testing::StartsWith("Copied "))));
  EXPECT_THAT(log.Get(), Contains(HasSubstr("train_db: reading its copy " + first)));
  std::filesystem::remove_all(source_);
  WriteDb(GetParam(), source_, NumberedRecords(49));
  EXPECT_NE(CopyDatabaseLocally(source_, options_)->path(), first);
}

TEST_P(StagingTest, WhatAKilledCopyLeftIsMadeAnew) {
  options_.keep = true;
  const std::string path = CopyDatabaseLocally(source_, options_)->path();
  // A copy that was killed leaves a part under the hidden name and no file under the final one.
  std::filesystem::remove(path + "/.complete");
  std::filesystem::rename(path, path + ".partial");
  const auto copy = CopyDatabaseLocally(source_, options_);
  ASSERT_NE(copy, nullptr);
  ExpectRead(copy->path());
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_P(StagingTest, ACopyThatLostAFileIsMadeAnew) {
  options_.keep = true;
  const std::string path = CopyDatabaseLocally(source_, options_)->path();
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().filename() != ".complete") std::filesystem::remove(entry.path());
  }
  const auto copy = CopyDatabaseLocally(source_, options_);
  ASSERT_NE(copy, nullptr);
  ExpectRead(copy->path());
}

TEST_P(StagingTest, AFullDiskIsAWarningAndLeavesNothing) {
  const LogLines log;
  EXPECT_EQ(InChild([&] {
              const FileSizeLimit limit(100);
              return CopyDatabaseLocally(source_, options_) == nullptr && Staged().empty() ? 0 : 1;
            }),
            0);
}

TEST_P(StagingTest, AFolderThatIsNotThereIsAWarning) {
  options_.folder = folder_ / "none";
  const LogLines log;
  EXPECT_EQ(CopyDatabaseLocally(source_, options_), nullptr);
  EXPECT_THAT(log.Get(),
              Contains(testing::AllOf(HasSubstr("not copied to this machine (cannot make"),
                                      HasSubstr("reading the original"))));
}

TEST_P(StagingTest, AFolderThatOthersMayEnterOrALinkIsRefused) {
  std::filesystem::create_directory(Private());
  chmod(Private().c_str(), 0755);
  EXPECT_THAT(Catch([&] { CopyDatabaseLocally(source_, options_); }),
              Refuses(ErrorCode::kNoPermission, "does not belong to your user only"));
  std::filesystem::remove(Private());
  std::filesystem::create_directory(folder_ / "elsewhere");
  chmod((folder_ / "elsewhere").c_str(), 0700);
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", Private());
  EXPECT_THAT(Catch([&] { CopyDatabaseLocally(source_, options_); }),
              Refuses(ErrorCode::kNoPermission, "does not belong to your user only"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "elsewhere"));
}

TEST_P(StagingTest, AutoLeavesADatabaseOfThisMachineWhereItLies) {
  options_.folder = "auto";
  const LogLines log;
  const auto copy = CopyDatabaseLocally(source_, options_);
  if (copy != nullptr) GTEST_SKIP() << "the tests' folder is on no disk of this machine";
  EXPECT_THAT(log.Get(), Contains(HasSubstr("is on this machine (")));
}

// --- Lists of files ---

class StagedListTest : public testing::Test {
 protected:
  StagedListTest() { std::filesystem::create_directory(options_.folder); }

  // Writes pictures of a single grey each, and a list that names one of them twice.
  void WritePictures() {
    std::string list;
    for (int i = 0; i < 12; ++i) {
      const std::string name = Join("a picture ", i, ".pgm");
      WriteBytes(folder_ / name, "P5 2 2 255\n" + std::string(4, static_cast<char>(10 * i)));
      list += Join(name, " ", i, "\n");
    }
    WriteBytes(list_, list + "a picture 3.pgm 3\n");
  }
  const LayerSpec& ImageLayer() const {
    return KeptLayer(
        "name: 'd' type: 'ImageData' top: 'x' top: 'y' image_data_param { shuffle: true "
        "batch_size: 13 source: '" +
        list_ + "' root_folder: '" + (folder_ / "") + "' }");
  }
  static std::vector<float> FirstBatch(const LayerSpec& layer, bool rows) {
    const InputEnv env{caffe::TRAIN, {1, 2}, {}, 1};
    const auto source = rows ? OpenHdf5Rows(layer, env) : OpenImageList(layer, env);
    return Numbers(source->Next().output(0));
  }

  TempFolder folder_;
  std::string list_ = folder_ / "list.txt";
  LocalCopyOptions options_{folder_ / "local"};
};

TEST_F(StagedListTest, PicturesOfAListAreReadOutOfAPackInTheSameOrder) {
  WritePictures();
  const std::vector<float> want = FirstBatch(ImageLayer(), false);
  const auto copy = CopyImageListLocally(list_, folder_ / "", options_);
  ASSERT_NE(copy, nullptr);
  for (int i = 0; i < 12; ++i) std::filesystem::remove(folder_ / Join("a picture ", i, ".pgm"));
  EXPECT_EQ(FirstBatch(ImageLayer(), false), want);
}

TEST_F(StagedListTest, AKeptPackIsUsedAgainUntilTheListChanges) {
  WritePictures();
  options_.keep = true;
  const std::string first = CopyImageListLocally(list_, folder_ / "", options_)->path();
  EXPECT_EQ(CopyImageListLocally(list_, folder_ / "", options_)->path(), first);
  std::filesystem::resize_file(first + "/files", 20);  // a disk may lose the end of a file
  const auto again = CopyImageListLocally(list_, folder_ / "", options_);
  EXPECT_EQ(again->path(), first);
  EXPECT_EQ(std::filesystem::file_size(first + "/files"), 13u * (11 + 4));
  WriteBytes(list_, "a picture 5.pgm 5\n");
  EXPECT_NE(CopyImageListLocally(list_, folder_ / "", options_)->path(), first);
}

TEST_F(StagedListTest, AKeptPackIsNotUsedWhenAPictureHasChanged) {
  const std::filesystem::path picture = folder_ / "a picture 7.pgm";
  const auto change = [&] { WriteBytes(picture, "P5 2 2 255\n" + std::string(4, 'x')); };
  WritePictures();
  change();
  const std::vector<float> want = FirstBatch(ImageLayer(), false);
  WritePictures();
  options_.keep = true;
  const std::string first = CopyImageListLocally(list_, folder_ / "", options_)->path();
  const auto before = std::filesystem::last_write_time(picture);
  change();
  std::filesystem::last_write_time(picture, before + std::chrono::seconds(2));
  const auto again = CopyImageListLocally(list_, folder_ / "", options_);
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again->path(), first);
  EXPECT_EQ(FirstBatch(ImageLayer(), false), want);
}

TEST_F(StagedListTest, AMissingPictureIsAWarningAndTheListIsReadWhereItLies) {
  WritePictures();
  std::filesystem::remove(folder_ / "a picture 7.pgm");
  const LogLines log;
  EXPECT_EQ(CopyImageListLocally(list_, folder_ / "", options_), nullptr);
  EXPECT_THAT(log.Get(), Contains(testing::AllOf(HasSubstr("not copied to this machine"),
                                                 HasSubstr("a picture 7.pgm"))));
  EXPECT_TRUE(std::filesystem::is_empty(options_.folder));
}

TEST_F(StagedListTest, Hdf5FilesOfAListAreReadFromTheirCopies) {
  std::string list;
  for (const char* name : {"one", "two"}) {
    std::filesystem::create_directory(folder_ / name);
    const std::string path = folder_ / Join(name, "/rows.h5");  // both files have the same name
    Hdf5Appender file(path);
    file.Append("x", std::vector<int64_t>{3, 1}, std::vector<float>(3, name[0]));
    file.Flush();
    list += path + "\n";
  }
  WriteBytes(list_, list);
  const LayerSpec& layer =
      KeptLayer("name: 'd' type: 'HDF5Data' top: 'x' hdf5_data_param { batch_size: 6 source: '" +
                list_ + "' }");
  const std::vector<float> want = FirstBatch(layer, true);
  const auto copy = CopyHdf5ListLocally(list_, options_);
  ASSERT_NE(copy, nullptr);
  for (const char* name : {"one", "two"}) std::filesystem::remove(folder_ / Join(name, "/rows.h5"));
  EXPECT_EQ(FirstBatch(layer, true), want);
}

TEST_F(StagedListTest, AListThatIsNotThereIsForItsReaderToReport) {
  const LogLines log;
  EXPECT_EQ(CopyImageListLocally(list_, "", options_), nullptr);
  EXPECT_EQ(CopyHdf5ListLocally(list_, options_), nullptr);
  EXPECT_THAT(log.Get(), Contains(HasSubstr("not copied to this machine")));
}

TEST(ReadInsteadTest, ACopyIsReadUnderEveryNameOfTheDatabase) {
  const TempFolder folder;
  WriteDb("LMDB", folder / "db", NumberedRecords(3));
  WriteDb("LMDB", folder / "copy", NumberedRecords(4));
  std::filesystem::create_directory_symlink(folder / "db", folder / "link");
  EXPECT_EQ(OpenCursor("LMDB", folder / "db")->Count(), 3);
  RedirectPath(folder / "db", folder / "copy");
  EXPECT_EQ(OpenCursor("LMDB", folder / "db/")->Count(), 4);
  EXPECT_EQ(OpenCursor("LMDB", folder / "link")->Count(), 4);
  EXPECT_EQ(OpenCursor("LMDB", folder / "copy")->Count(), 4);
}

}  // namespace
}  // namespace trainer
