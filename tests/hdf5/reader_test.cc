// Tests files that h5py wrote (scripts/golden/hdf5.py).

#include "trainer/hdf5/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/error_of.h"
#include "support/hdf5_floats.h"
#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = SourceFolder() + "/tests/golden/";

TEST(Hdf5ReaderTest, ReadsWhatH5pyWrote) {
  for (const char* name : {"hdf5_weights.h5", "hdf5_latest.h5"}) {  // the second has a newer format
    const Hdf5Reader reader(kGolden + name);
    EXPECT_THAT(reader.Array("data/ip/0").dims(), ElementsAre(2, 3)) << name;
    EXPECT_THAT(Floats(reader.Array("data/ip/0")), ElementsAre(0, 0.5, 1, 1.5, 2, 2.5)) << name;
    EXPECT_THAT(Floats(reader.Array("data/ip/1")), ElementsAre(-1, -0.5)) << "double";
    EXPECT_THAT(Floats(reader.Array("data/block/1x1/0")), ElementsAre(100, 100.5)) << "big-endian";
    EXPECT_TRUE(reader.Array("data/ip/0").is_float());
    EXPECT_TRUE(reader.Members("data/relu").empty());
  }
}

TEST(Hdf5ReaderTest, ReadsCompressedRowsAndWholeNumbers) {
  const Hdf5Reader reader(kGolden + "hdf5_rows_a.h5");
  const Hdf5Array image = reader.Array("image");
  EXPECT_THAT(image.dims(), ElementsAre(5, 3, 2, 2));
  std::vector<float> rows(24);
  image.ReadRows(1, 2, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i], static_cast<float>(100 * (1 + i / 12) + i % 12)) << i;
  }
  EXPECT_FALSE(reader.Array("label").is_float());
  EXPECT_THAT(Floats(reader.Array("label")), ElementsAre(0, 1, 2, 3, 4));
}

// Returns the number of bytes that this process has read from files.
uint64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  io >> name >> bytes;
  return bytes;
}

TEST(Hdf5ReaderTest, ALargeChunkIsReadOnceForAllItsRows) {
  const Hdf5Reader reader(kGolden + "hdf5_large_chunk.h5");
  const Hdf5Array data = reader.Array("data");
  std::vector<float> rows(64 * 1024);
  const uint64_t before = BytesRead();
  for (int64_t row = 0; row < 4096; row += 64) {
    data.ReadRows(row, 64, rows);
    EXPECT_EQ(rows.front(), static_cast<float>(row % 251));
    EXPECT_EQ(rows.back(), static_cast<float>((row + 63) % 251));
  }
  EXPECT_LT(BytesRead() - before, 3 * FileSize(kGolden + "hdf5_large_chunk.h5"));
}

TEST(Hdf5ReaderTest, RefusesABufferOfAnotherSizeThanItsRows) {
  const Hdf5Reader reader(kGolden + "hdf5_rows_a.h5");
  std::vector<float> rows(23);
  EXPECT_EQ(ErrorOf([&] { reader.Array("image").ReadRows(1, 2, rows); }).first,
            ErrorCode::kInternal);
}

TEST(Hdf5ReaderTest, FindsTheSignatureBehindAUserBlockAndNowhereElse) {
  const TempFolder folder;
  EXPECT_TRUE(IsHdf5(kGolden + "hdf5_weights.h5"));
  EXPECT_TRUE(IsHdf5(kGolden + "hdf5_latest.h5"));
  const std::string signature = "\x89HDF\r\n\x1a\n";
  WriteText(folder / "moved", std::string(100, ' ') + signature + std::string(5000, ' '));
  EXPECT_FALSE(IsHdf5(folder / "moved"));
  WriteText(folder / "empty.h5", "");
  EXPECT_FALSE(IsHdf5(folder / "empty.h5"));
  EXPECT_EQ(ErrorOf([&] { IsHdf5(folder / "none"); }).first, ErrorCode::kNoInput);
}

struct BadCase {
  const char* name;
  const char* reason;
};

class BadDatasetTest : public testing::TestWithParam<BadCase> {};

TEST_P(BadDatasetTest, IsRefusedWithASentence) {
  const Hdf5Reader reader(kGolden + "hdf5_bad.h5");
  testing::internal::CaptureStderr();
  const auto [code, message] = ErrorOf([&] { reader.Array(GetParam().name); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, AllOf(HasSubstr("hdf5_bad.h5: '"), HasSubstr(GetParam().reason)));
}

INSTANTIATE_TEST_SUITE_P(
    Of, BadDatasetTest,
    testing::Values(BadCase{"missing", "'missing' is not in this file; the file has: "},
                    BadCase{"loop/missing", "'loop/missing' is not in this file"},
                    BadCase{"good/0", "'good' is a dataset, but a group is expected"},
                    BadCase{"loop", "is not a dataset but a group"},
                    BadCase{"soft", "is a soft link, and links are not followed"},
                    BadCase{"external", "is a link to another file, and links are not followed"},
                    BadCase{"huge", "needs 4398046511104 bytes for its shape"},
                    BadCase{"late", "needs 4398046511104 bytes for its shape"},
                    BadCase{"outside", "stores its numbers in another file"},
                    BadCase{"virtual", "is a virtual dataset of other files"},
                    BadCase{"words", "does not contain plain numbers"},
                    BadCase{"truth", "does not contain plain numbers"},
                    BadCase{"pairs", "does not contain plain numbers"},
                    BadCase{"none", "has no shape"}),
    [](const auto& one) {
      std::string name = one.param.name;
      std::ranges::replace(name, '/', '_');
      return name;
    });

TEST(Hdf5ReaderTest, RefusesALinkInAListing) {
  const Hdf5Reader reader(kGolden + "hdf5_bad.h5");
  const auto [code, message] = ErrorOf([&] { reader.Members(""); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("'external' is a link to another file"));
}

TEST(Hdf5ReaderTest, GivesTheGoodPartOfABadFile) {
  const Hdf5Reader reader(kGolden + "hdf5_bad.h5");
  EXPECT_THAT(Floats(reader.Array("good")), ElementsAre(0, 0.5, 1, 1.5));
}

// A truncated file is refused, wherever it is cut.
TEST(Hdf5ReaderTest, RefusesACutFile) {
  const TempFolder folder;
  for (const char* name : {"hdf5_weights.h5", "hdf5_rows_a.h5"}) {
    const std::string whole = ReadText(kGolden + name);
    testing::internal::CaptureStderr();
    for (size_t size = 0; size < whole.size(); size += 37) {
      WriteText(folder / "cut.h5", whole.substr(0, size));
      const auto [code, message] = ErrorOf([&] { Hdf5Reader(folder / "cut.h5"); });
      EXPECT_EQ(code, ErrorCode::kData) << name << " cut to " << size;
      EXPECT_THAT(message, HasSubstr("cut.h5: ")) << size;
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
}

// Reads all arrays below `group`, a few groups deep.
void ReadAll(const Hdf5Reader& reader, const std::string& group, int depth) {
  for (const Hdf5Reader::Member& member : reader.Members(group)) {
    const std::string path = group.empty() ? member.name : group + "/" + member.name;
    if (!member.is_group) {
      Floats(reader.Array(path));
    } else if (depth < 6) {
      ReadAll(reader, path, depth + 1);
    }
  }
}

// Without a seal, a flipped bit may change values unnoticed, but nothing worse happens.
TEST(Hdf5ReaderTest, SurvivesAnyFlippedBit) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the HDF5 library tries allocations of any size; this sanitizer ends the program";
#endif
  const TempFolder folder;
  for (const char* name : {"hdf5_weights.h5", "hdf5_latest.h5", "hdf5_rows_a.h5"}) {
    const std::string whole = ReadText(kGolden + name);
    testing::internal::CaptureStderr();
    int refused = 0;
    for (size_t bit = 0; bit < whole.size() * 8; bit += 97) {
      std::string bad = whole;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      WriteText(folder / "bad.h5", bad);
      try {
        ReadAll(Hdf5Reader(folder / "bad.h5"), "", 0);
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(error.code(), ErrorCode::kData) << bit << ": " << error.what();
      }
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_GT(refused, 10) << name;
  }
}

TEST(Hdf5ReaderTest, OpensAFileThatCannotBeLocked) {
  const TempFolder folder;
  WriteText(folder / "x.h5", ReadText(kGolden + "hdf5_weights.h5"));
  const Hdf5Reader first(folder / "x.h5"), second(folder / "x.h5");
  EXPECT_EQ(Floats(first.Array("data/ip/0")), Floats(second.Array("data/ip/0")));
}

TEST(Hdf5ReaderTest, NamesAMissingFileAndAFolder) {
  const TempFolder folder;
  EXPECT_EQ(ErrorOf([&] { Hdf5Reader(folder / "none.h5"); }).first, ErrorCode::kNoInput);
  EXPECT_EQ(ErrorOf([&] { Hdf5Reader reader(folder.path()); }).first, ErrorCode::kNoInput);
}

}  // namespace
}  // namespace trainer
