#include "lmdb_extents.h"

#include <gtest/gtest.h>

#include "data/test_data.h"

namespace trainer {
namespace {

constexpr uint64_t kExtent = LmdbExtents::kBytes;

class LmdbExtentsTest : public testing::Test {
 protected:
  LmdbExtentsTest() {
    WriteBytes(path_, "");
    std::filesystem::resize_file(path_, kSize);
  }

  static constexpr uint64_t kSize = 5 * kExtent / 2;
  TempFolder folder_;
  std::string path_ = folder_ / "data.mdb";
};

TEST_F(LmdbExtentsTest, RecordsInOrderBringEachByteInOnce) {
  LmdbExtents extents(path_, kSize);
  uint64_t read = 0;
  int reads = 0;
  for (uint64_t at = 8192; at < kSize; at += 5000) {
    const uint64_t bytes = extents.Passed(at);
    read += bytes;
    reads += bytes > 0;
  }
  EXPECT_EQ(reads, 3);
  EXPECT_LE(read, kSize);
  EXPECT_GE(read, kSize - 3 * 5000 - 8192 - 4096);
}

TEST_F(LmdbExtentsTest, RecordsAtRandomBringInNothing) {
  LmdbExtents extents(path_, kSize);
  EXPECT_EQ(extents.Passed(2 * kExtent), 0u);
  EXPECT_EQ(extents.Passed(4096), 0u);
  EXPECT_EQ(extents.Passed(3 * kExtent / 2), 0u);
  EXPECT_EQ(extents.Passed(8192), 0u);
}

TEST_F(LmdbExtentsTest, OfExtentsThatAreAnnouncedNothingElseIsRead) {
  LmdbExtents extents(path_, kSize);
  extents.WillRead(kExtent, kExtent / 8);
  for (uint64_t at = kExtent; at < kExtent + kExtent / 8; at += 5000) {
    EXPECT_EQ(extents.Passed(at), 0u);
  }
  extents.WillRead(kSize - 100, kExtent);
  extents.WillRead(2 * kSize, kExtent);
}

TEST_F(LmdbExtentsTest, AFileThatEndsEarlyDoesNotMatter) {
  LmdbExtents extents(path_, 100 * kExtent);
  EXPECT_EQ(extents.Passed(kSize - 100), 0u);
  EXPECT_LE(extents.Passed(kSize), kExtent);
}

TEST_F(LmdbExtentsTest, OnADiskOfThisMachineTheSystemReadsAhead) {
  LmdbExtents extents(folder_ / "");
  EXPECT_EQ(extents.Passed(4096) + extents.Passed(8192), 0u);
}

}  // namespace
}  // namespace trainer
