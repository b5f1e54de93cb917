#include "trainer/base/file/file_system.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace trainer {
namespace {

TEST(FileSystemTest, KnowsThoseOfClusters) {
  EXPECT_EQ(FileSystemOf(0x0BD00BD0).name, "Lustre");
  EXPECT_EQ(FileSystemOf(0x6969).name, "NFS");
  EXPECT_EQ(FileSystemOf(0x47504653).name, "GPFS");
  EXPECT_EQ(FileSystemOf(0x19830326).name, "BeeGFS");
  for (const uint64_t magic : {0x0BD00BD0ull, 0x6969ull, 0x47504653ull, 0x19830326ull}) {
    EXPECT_EQ(FileSystemOf(magic).kind, FileSystemKind::kNetwork);
  }
  EXPECT_EQ(FileSystemOf(0xEF53).kind, FileSystemKind::kLocal);
  EXPECT_EQ(FileSystemOf(0x01021994).kind, FileSystemKind::kMemory);
  EXPECT_EQ(FileSystemOf(0x1234).kind, FileSystemKind::kUnknown);
  EXPECT_EQ(FileSystemOf(0x1234).name, "type 0x1234");
}

TEST(FileSystemTest, AMissingFileIsWhereItsFolderIs) {
  EXPECT_EQ(FileSystemAt("/proc/none/of/these").name, FileSystemAt("/proc").name);
  const TempFolder folder;
  EXPECT_EQ(FileSystemAt(folder / "a/b/c").name, FileSystemAt(folder.path()).name);
  EXPECT_NE(FileSystemAt(folder.path()).name, "");
}

TEST(LustreStripesTest, ReadsTheAttributesOfFilesWithAndWithoutAPool) {
  for (const char* magic : {"\xd0\x0b\xd1\x0b", "\xd0\x0b\xd3\x0b"}) {
    std::string layout(magic, 4);
    layout += std::string(20, '\x01') + std::string("\0\0\x10\0", 4) + std::string("\x07\0\0\0", 4);
    EXPECT_EQ(ParseLustreLayout(layout), 7);
    EXPECT_EQ(ParseLustreLayout(layout.substr(0, 31)), 0);
  }
  EXPECT_EQ(ParseLustreLayout(std::string("\xd0\x0b\xd6\x0b", 4) + std::string(200, '\x01')), 0);
}

TEST(LustreStripesTest, IsNotKnownElsewhere) {
  const TempFolder folder;
  std::ofstream(folder / "file") << "x";
  EXPECT_EQ(LustreStripes(folder / "file"), 0);
  EXPECT_EQ(LustreStripes(folder / "none"), 0);
}

}  // namespace
}  // namespace trainer
