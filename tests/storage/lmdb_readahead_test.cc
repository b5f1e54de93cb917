#include "lmdb/lmdb_readahead.h"

#include <gtest/gtest.h>

#include "storage/test_data.h"

namespace trainer {
namespace {

constexpr uint64_t kExtent = LmdbReadahead::kBytes;

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
  LmdbReadahead extents(path_, kSize);
  uint64_t read = 0;
  int reads = 0;
  for (uint64_t at = 8192; at < kSize; at += 5000) {
    const uint64_t bytes = extents.OnRecord(at);
    read += bytes;
    reads += bytes > 0;
  }
  EXPECT_EQ(reads, 3);
  EXPECT_LE(read, kSize);
  EXPECT_GE(read, kSize - 3 * 5000 - 8192 - 4096);
}

TEST_F(LmdbExtentsTest, RecordsAtRandomBringInNothing) {
  LmdbReadahead extents(path_, kSize);
  EXPECT_EQ(extents.OnRecord(2 * kExtent), 0u);
  EXPECT_EQ(extents.OnRecord(4096), 0u);
  EXPECT_EQ(extents.OnRecord(3 * kExtent / 2), 0u);
  EXPECT_EQ(extents.OnRecord(8192), 0u);
}

TEST_F(LmdbExtentsTest, OfExtentsThatAreAnnouncedNothingElseIsRead) {
  LmdbReadahead extents(path_, kSize);
  extents.WillNeed(kExtent, kExtent / 8);
  for (uint64_t at = kExtent; at < kExtent + kExtent / 8; at += 5000) {
    EXPECT_EQ(extents.OnRecord(at), 0u);
  }
  extents.WillNeed(kSize - 100, kExtent);
  extents.WillNeed(2 * kSize, kExtent);
}

TEST_F(LmdbExtentsTest, AFileThatEndsEarlyDoesNotMatter) {
  LmdbReadahead extents(path_, 100 * kExtent);
  EXPECT_EQ(extents.OnRecord(kSize - 100), 0u);
  EXPECT_LE(extents.OnRecord(kSize), kExtent);
}

TEST_F(LmdbExtentsTest, OnADiskOfThisMachineTheSystemReadsAhead) {
  LmdbReadahead extents(folder_ / "");
  EXPECT_EQ(extents.OnRecord(4096) + extents.OnRecord(8192), 0u);
}

}  // namespace
}  // namespace trainer
