#include "trainer/storage/array_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/storage/array_file.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

void AppendFloats(ArrayWriter& writer, const std::string& name, const std::vector<int64_t>& dims,
                  const std::vector<float>& values) {
  writer.Append(name, dims, std::span<const float>(values));
}

std::vector<float> ReadWhole(const std::string& path, const std::string& name) {
  const auto file = OpenArrayFile(path);
  const auto array = file->Array(name);
  std::vector<float> values(static_cast<size_t>(array->Count()));
  array->ReadRows(0, array->dims()[0], values);
  return values;
}

TEST(ArrayWriterTest, WhatIsWrittenIsReadInEveryFormat) {
  const TempFolder folder;
  for (const char* name : {"a.h5", "a.npz"}) {
    const std::string path = folder / name;
    const auto writer = OpenArrayWriter(path);
    AppendFloats(*writer, "data", {2, 2}, {1, 2, 3, 4});
    const uint8_t bytes[] = {7, 255};
    const int64_t dims[] = {2};
    writer->Append("pixels", dims, bytes);
    AppendFloats(*writer, "data", {1, 2}, {5, 6});
    AppendFloats(*writer, "none", {0, 3}, {});
    EXPECT_THAT(folder.Names(), testing::Not(testing::Contains(name))) << "not there yet";
    writer->Finish();
    EXPECT_THAT(OpenArrayFile(path)->Array("data")->dims(), ElementsAre(3, 2)) << name;
    EXPECT_THAT(ReadWhole(path, "data"), ElementsAre(1, 2, 3, 4, 5, 6)) << name;
    EXPECT_THAT(ReadWhole(path, "pixels"), ElementsAre(7, 255)) << name;
    EXPECT_TRUE(OpenArrayFile(path)->Array("pixels")->may_be_bytes()) << name;
    EXPECT_THAT(OpenArrayFile(path)->Array("none")->dims(), ElementsAre(0, 3)) << name;
  }
  EXPECT_THAT(folder.Names(), ElementsAre("a.h5", "a.npz"));
}

TEST(ArrayWriterTest, AnNpyFileHoldsOneArrayAsNumpyWritesIt) {
  const TempFolder folder;
  const auto writer = OpenArrayWriter(folder / "a.npy");
  AppendFloats(*writer, "scores", {1, 2}, {1, 2});
  AppendFloats(*writer, "scores", {1, 2}, {3, 4});
  EXPECT_THAT(ErrorOf([&] { AppendFloats(*writer, "other", {1}, {1}); }),
              Pair(ErrorCode::kUsage, HasSubstr("an .npy file holds one array, not 'scores' and "
                                                "'other'; write an .npz file")));
  writer->Finish();
  EXPECT_THAT(ReadWhole(folder / "a.npy", "data"), ElementsAre(1, 2, 3, 4));
  const std::string bytes = ReadText(folder / "a.npy");
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  EXPECT_EQ(bytes.substr(0, 10 + header.size()),
            std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header);
  EXPECT_THAT(bytes, SizeIs(128 + 16));
  EXPECT_EQ(bytes[127], '\n');
}

TEST(ArrayWriterTest, NothingStaysWithoutFinish) {
  const TempFolder folder;
  for (const char* name : {"a.h5", "a.npz", "a.npy"}) {
    AppendFloats(*OpenArrayWriter(folder / name), "data", {1}, {1});
    EXPECT_THAT(folder.Names(), IsEmpty()) << name;
  }
}

TEST(ArrayWriterTest, NpzRefusesRowsThatDifferAndNamesThatLeadOutOfTheFile) {
  const TempFolder folder;
  const auto writer = OpenArrayWriter(folder / "a.npz");
  AppendFloats(*writer, "a/b", {1, 2}, {1, 2});
  EXPECT_THAT(ErrorOf([&] {
                AppendFloats(*writer, "a/b", {1, 3}, {1, 2, 3});
              }),
              Pair(ErrorCode::kData, HasSubstr("the rows of 'a/b' differ in shape or type")));
  for (const char* name : {"", "/a", "../a", "a/../../b"}) {
    EXPECT_THAT(ErrorOf([&] { AppendFloats(*writer, name, {1}, {1}); }),
                Pair(ErrorCode::kUsage, HasSubstr("cannot be the name of an array")))
        << name;
  }
  EXPECT_EQ(ErrorOf([&] { OpenArrayWriter(folder / "none/a.npz"); }).first,
            ErrorCode::kCannotCreate);
}

}  // namespace
}  // namespace trainer
