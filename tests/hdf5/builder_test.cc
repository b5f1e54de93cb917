#include "trainer/hdf5/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>

#include "support/error_of.h"
#include "support/hdf5_floats.h"
#include "support/temp_folder.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Bytes(const Hdf5Builder& builder, uint64_t from = 0) {
  std::string bytes;
  builder.Emit(from, [&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  });
  return bytes;
}

TEST(Hdf5BuilderTest, GivesAFileThatReadsBackTheSame) {
  const TempFolder folder;
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  const float bias = -7;
  Hdf5Builder builder("x.h5", 512);
  builder.AddFloats("data/a/b/0", std::vector<int64_t>{2, 3}, weights);
  builder.AddFloats("data/a/b/1", {}, {&bias, 1});
  builder.AddFloats("data/a/empty", std::vector<int64_t>{3, 0}, {});
  builder.AddGroup("data/a");
  builder.AddGroup("data/c/d");
  builder.AddInt("iter", 123);
  builder.AddText("name", "some/file");
  builder.AddBytes("bytes", std::string_view("\0\xff\n", 3));
  const uint64_t size = builder.Finish();
  const std::string bytes = Bytes(builder);
  EXPECT_EQ(bytes.size(), size);
  EXPECT_EQ(Bytes(builder, 512), bytes.substr(512));
  WriteText(folder / "x.h5", bytes);

  ASSERT_TRUE(IsHdf5(folder / "x.h5"));
  const Hdf5Reader reader(folder / "x.h5");
  const Hdf5Array matrix = reader.Array("data/a/b/0");
  EXPECT_THAT(matrix.dims(), ElementsAre(2, 3));
  EXPECT_EQ(Floats(matrix), weights);
  std::vector<float> row(3);
  matrix.ReadRows(1, 1, row);
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
  EXPECT_THAT(reader.Array("data/a/b/1").dims(), ElementsAre());
  EXPECT_THAT(Floats(reader.Array("data/a/b/1")), ElementsAre(-7));
  EXPECT_EQ(reader.Array("data/a/empty").count(), 0);
  EXPECT_EQ(reader.Text("name"), "some/file");
  int32_t iter = 0;
  reader.Array("iter").Read(std::span<int32_t>(&iter, 1));
  EXPECT_EQ(iter, 123);
  std::vector<uint8_t> raw(3);
  reader.Array("bytes").Read(std::span<uint8_t>(raw));
  EXPECT_THAT(raw, ElementsAre(0, 255, 10));
  std::vector<std::string> names;
  for (const auto& member : reader.Members("")) names.push_back(member.name);
  EXPECT_THAT(names, ElementsAre("bytes", "data", "iter", "name"));
  EXPECT_TRUE(reader.Has("data/c/d"));
  EXPECT_FALSE(reader.Has("data/x/d"));
}

TEST(Hdf5BuilderTest, HoldsThousandsOfArraysAndGivesTheSameBytesTwice) {
  const TempFolder folder;
  std::vector<float> values(5000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto make = [&] {
    Hdf5Builder builder("x.h5", 512);
    for (size_t i = 0; i < values.size(); ++i) {
      builder.AddFloats("history/" + std::to_string(i), std::vector<int64_t>{1}, {&values[i], 1});
    }
    builder.Finish();
    return Bytes(builder);
  };
  const std::string bytes = make();
  EXPECT_TRUE(make() == bytes);
  WriteText(folder / "x.h5", bytes);
  const Hdf5Reader reader(folder / "x.h5");
  EXPECT_EQ(reader.Members("history").size(), values.size());
  EXPECT_THAT(Floats(reader.Array("history/4711")), ElementsAre(4711));
}

// Writes 2.4 GB from a mapping that is never touched to a sparse file.
TEST(Hdf5BuilderTest, HoldsMoreThanTwoGigabytes) {
  const TempFolder folder;
  constexpr size_t kCount = 600000001;
  void* memory = mmap(nullptr, kCount * sizeof(float), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* numbers = static_cast<float*>(memory);
  numbers[kCount - 1] = 4.5f;
  Hdf5Builder builder("x.h5", 512);
  builder.AddFloats("data/big/0", std::vector<int64_t>{kCount}, {numbers, kCount});
  const float after = 7;
  builder.AddFloats("data/big/1", {}, {&after, 1});
  EXPECT_GT(builder.Finish(), uint64_t{2400000000});
  std::ofstream file(folder / "x.h5", std::ios::binary);
  builder.Emit(0, [&](const void* data, size_t size) {
    const size_t skipped = size > 100000 ? size - sizeof(float) : 0;
    file.seekp(static_cast<std::streamoff>(skipped), std::ios::cur);
    file.write(static_cast<const char*>(data) + skipped,
               static_cast<std::streamsize>(size - skipped));
  });
  file.close();
  munmap(memory, kCount * sizeof(float));
  const Hdf5Reader reader(folder / "x.h5");
  const Hdf5Array big = reader.Array("data/big/0");
  EXPECT_THAT(big.dims(), ElementsAre(kCount));
  std::vector<float> last(2);
  big.ReadRows(kCount - 2, 2, last);
  EXPECT_THAT(last, ElementsAre(0, 4.5f));
  EXPECT_THAT(Floats(reader.Array("data/big/1")), ElementsAre(7));
}

TEST(Hdf5BuilderTest, RefusesTwoThingsOfOnePath) {
  const float value = 1;
  Hdf5Builder builder("x.h5", 512);
  builder.AddFloats("data/a/0", {}, {&value, 1});
  const auto [code, message] = ErrorOf([&] { builder.AddGroup("data/a/0"); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message, HasSubstr("x.h5: cannot make 'data/a/0'"));
  EXPECT_EQ(ErrorOf([&] {
              builder.AddFloats("data/a/0", {}, {&value, 1});
            }).first,
            ErrorCode::kConfig);
  EXPECT_EQ(ErrorOf([&] { builder.AddGroup("data/a/0/b"); }).first, ErrorCode::kConfig);
}

}  // namespace
}  // namespace trainer
