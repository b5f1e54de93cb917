#include "trainer/inference/predict/image_paths.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "predict/folder_walk.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ImagePathsTest : public testing::Test {
 protected:
  // Returns the paths, without the folder of the test.
  std::vector<std::string> Read(const std::vector<std::string>& words,
                                const std::string& list = "") const {
    ImagePaths paths(words, list);
    std::vector<std::string> all;
    for (std::string path; paths.Next(&path);) all.push_back(Short(path));
    return all;
  }
  std::vector<std::string> Walk(size_t names) const {
    FolderWalk walk(folder_.path(), names);
    std::vector<std::string> all;
    for (std::string path; walk.Next(&path);) all.push_back(Short(path));
    return all;
  }
  std::string Short(const std::string& path) const {
    return path.starts_with(folder_.path()) ? path.substr(folder_.path().size()) : path;
  }
  void MakeFolder(const std::string& name) const {
    std::filesystem::create_directories(folder_ / name);
  }

  TempFolder folder_;
};

TEST_F(ImagePathsTest, AFolderIsWalkedInByteOrderWithoutHiddenFiles) {
  for (const char* folder : {"b", "b/deep/er", ".hidden", "a.jpg", "empty"}) MakeFolder(folder);
  for (const char* file : {"z.png", "b.JPEG", "b/2.pgm", "b/10.ppm", "b/deep/er/x.jpg", "b/.no.jpg",
                           ".hidden/x.jpg", "readme.txt", "a.jpg/in.png", "C.png"}) {
    folder_.Write(file, "");
  }
  std::filesystem::create_directory_symlink(folder_ / "b", folder_ / "loop");
  std::filesystem::create_symlink(folder_ / "z.png", folder_ / "link.png");
  EXPECT_THAT(Read({folder_.path()}),
              ElementsAre("/C.png", "/a.jpg/in.png", "/b.JPEG", "/b/10.ppm", "/b/2.pgm",
                          "/b/deep/er/x.jpg", "/link.png", "/z.png"));
  EXPECT_THAT(
      Read({folder_ / "b/", "file.png", folder_ / "a.jpg"}),
      ElementsAre("/b/10.ppm", "/b/2.pgm", "/b/deep/er/x.jpg", "file.png", "/a.jpg/in.png"));
}

TEST_F(ImagePathsTest, AFolderOfMoreNamesThanAreKeptIsReadSeveralTimes) {
  MakeFolder("50");
  std::vector<std::string> expected;
  for (int i = 10; i < 99; ++i) {
    const std::string name = i == 50 ? "50/x.png" : Join(i, ".png");
    folder_.Write(name, "");
    expected.push_back("/" + name);
  }
  for (const size_t names : {1, 2, 7, 44, 45, 88, 89, 1000}) EXPECT_EQ(Walk(names), expected);
}

TEST_F(ImagePathsTest, AFolderThatCannotBeReadIsGivenAsAPath) {
  FolderWalk walk("none");
  std::string path;
  EXPECT_TRUE(walk.Next(&path));
  EXPECT_EQ(path, "none");
  EXPECT_FALSE(walk.Next(&path));
}

TEST_F(ImagePathsTest, AListMayHaveLabels) {
  folder_.Write("c 3", "");
  const std::string list = folder_.Write("list.txt",
                                         "\xEF\xBB\xBF"
                                         "a.png 7\nb.png 0.5 -3 1\r\n\n" +
                                             (folder_ / "c 3") + "\nlast.png -1");
  EXPECT_THAT(Read({"first.png"}, list),
              ElementsAre("first.png", "a.png", "b.png", "/c 3", "last.png"));
  EXPECT_THAT(Read({"first.png"}), ElementsAre("first.png"));
}

TEST_F(ImagePathsTest, AListMayBeTheStandardInput) {
  const std::string list = folder_.Write("list.txt", "a.png 7\nb.png\n");
  const int before = dup(STDIN_FILENO);
  const int file = open(list.c_str(), O_RDONLY);
  ASSERT_GE(dup2(file, STDIN_FILENO), 0);
  EXPECT_THAT(Read({}, "-"), ElementsAre("a.png", "b.png"));
  EXPECT_THAT(ErrorOf([&] { Read({}, "-"); }),
              Pair(ErrorCode::kData,
                   "the standard input: the list names no images; write one path "
                   "per line"));
  dup2(before, STDIN_FILENO);
  close(before);
  close(file);
}

TEST_F(ImagePathsTest, RefusesWhatHasNoImages) {
  const std::string empty = folder_.Write("empty", "\n\n");
  EXPECT_THAT(ErrorOf([&] { Read({}, empty); }),
              Pair(ErrorCode::kData, HasSubstr("the list names no images")));
  EXPECT_THAT(
      ErrorOf([&] { Read({folder_.path()}); }),
      Pair(ErrorCode::kData, folder_.path() +
                                 ": no images found: the folder and those below it have no JPEG, "
                                 "PNG, TIFF, PGM or PPM files"));
  EXPECT_THAT(ErrorOf([&] { ImagePaths({}, folder_ / "none"); }),
              Pair(ErrorCode::kNoInput, HasSubstr("none")));
  const std::string binary = folder_.Write("binary", std::string(3 << 20, 'x'));
  EXPECT_THAT(ErrorOf([&] { Read({}, binary); }),
              Pair(ErrorCode::kData, HasSubstr("a line is longer than 1048576 bytes")));
}

}  // namespace
}  // namespace trainer
