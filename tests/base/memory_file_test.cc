#include "trainer/base/file/memory_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "support/temp_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/random_access_file.h"

namespace trainer {
namespace {

TEST(MemoryFileTest, IsReadAsAFileOfTheDisk) {
  const TempFolder folder;
  const std::string path = folder / "pack/net.prototxt";
  EXPECT_TRUE(IsMissing(path));
  EXPECT_FALSE(IsMemoryFile(path));
  AddMemoryFile(path, "0123456789");
  EXPECT_TRUE(IsMemoryFile(path));
  EXPECT_TRUE(Exists(path));
  EXPECT_FALSE(IsMissing(path));
  EXPECT_EQ(FileSize(path), 10u);
  EXPECT_EQ(ReadFile(path, 100), "0123456789");
  const RandomAccessFile file(path);
  EXPECT_EQ(file.path(), path);
  char piece[3] = {};
  EXPECT_EQ(file.Read(8, 3, piece), 2u);
  EXPECT_EQ(std::string(piece, 2), "89");
  EXPECT_THAT(folder.Names(), testing::IsEmpty());
}

TEST(MemoryFileTest, HasTheContentOfTheLastCall) {
  const TempFolder folder;
  AddMemoryFile(folder / "a", "first");
  AddMemoryFile(folder / "a", "");
  EXPECT_EQ(ReadFile(folder / "a", 100), "");
  EXPECT_EQ(SystemPath(folder / "b"), folder / "b");
}

TEST(MemoryFileTest, AScopeRemovesFilesAtItsEnd) {
  const TempFolder folder;
  std::optional<RandomAccessFile> open;
  {
    const MemoryFilesScope scope;
    AddMemoryFile(folder / "a", "content");
    open.emplace(folder / "a");
    EXPECT_TRUE(Exists(folder / "a"));
  }
  EXPECT_FALSE(IsMemoryFile(folder / "a"));
  EXPECT_TRUE(IsMissing(folder / "a"));
  char piece[7] = {};
  EXPECT_EQ(open->Read(0, 7, piece), 7u);
  EXPECT_EQ(std::string(piece, 7), "content");
}

}  // namespace
}  // namespace trainer
