#include "trainer/datasets/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Returns a record with constant red, green and blue planes.
std::string CifarRecord(int label, int red, int green, int blue) {
  std::string record(1, static_cast<char>(label));
  for (const int value : {red, green, blue}) record.append(1024, static_cast<char>(value));
  return record;
}

class Cifar10Test : public testing::TestWithParam<const char*> {
 protected:
  Cifar10Test() {
    std::filesystem::create_directory(folder_ / "in");
    WriteBytes(folder_ / "in/data_batch_1.bin",
               CifarRecord(3, 1, 2, 250) + CifarRecord(9, 4, 200, 6));
    WriteBytes(folder_ / "in/data_batch_2.bin", CifarRecord(0, 7, 8, 9));
    WriteBytes(folder_ / "in/data_batch_4.bin", CifarRecord(1, 1, 1, 1));
    WriteBytes(folder_ / "in/test_batch.bin", CifarRecord(5, 11, 12, 13));
  }
  Thrown Refusal() {
    return Catch([&] { WriteCifar10(folder_ / "in", folder_ / "out", GetParam()); });
  }
  void ExpectNothingMade() { EXPECT_FALSE(std::filesystem::exists(folder_ / "out")); }

  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Of, Cifar10Test, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(Cifar10Test, WritesBatchesThatFollowEachOtherWithKeysOfFiveDigits) {
  const Cifar10Files made = WriteCifar10(folder_ / "in", folder_ / "out", GetParam());
  EXPECT_THAT(made.train, HasSubstr("/out/cifar10_train_l"));
  EXPECT_EQ(made.train_records, 3);  // data_batch_4.bin has no data_batch_3.bin before it
  EXPECT_EQ(made.test_records, 1);
  const auto train = OpenCursor(GetParam(), made.train);
  for (const std::string& record :
       {CifarRecord(3, 1, 2, 250), CifarRecord(9, 4, 200, 6), CifarRecord(0, 7, 8, 9)}) {
    EXPECT_EQ(train->Value(),
              MakeDatum(3, 32, 32, record.substr(1), record[0]).SerializeAsString());
    train->Next();
  }
  EXPECT_EQ(train->Key(), "00000");
  train->Next();
  EXPECT_EQ(train->Key(), "00001");
  EXPECT_EQ(OpenCursor(GetParam(), made.test)->Value(),
            MakeDatum(3, 32, 32, CifarRecord(5, 11, 12, 13).substr(1), 5).SerializeAsString());
}

TEST_P(Cifar10Test, WritesTheMeanOfTheTrainingImagesInTheOldForm) {
  caffe::BlobProto mean;
  const Cifar10Files made = WriteCifar10(folder_ / "in", folder_ / "out", GetParam());
  ASSERT_TRUE(mean.ParseFromString(ReadBytes(made.mean)));
  EXPECT_EQ(mean.num(), 1);
  EXPECT_EQ(mean.channels(), 3);
  EXPECT_EQ(mean.height(), 32);
  EXPECT_EQ(mean.width(), 32);
  ASSERT_EQ(mean.data_size(), 3072);
  EXPECT_FLOAT_EQ(mean.data(0), 4);
  EXPECT_FLOAT_EQ(mean.data(1024), 70);
  EXPECT_FLOAT_EQ(mean.data(3071), 265.0f / 3);
}

// A net in phase TEST reads the middle 32 pixels, which are the image without its border.
TEST_P(Cifar10Test, PutsABorderAroundEachImage) {
  constexpr size_t kSide = 36;
  const Cifar10Files made = WriteCifar10(folder_ / "in", folder_ / "out", GetParam(), 2);
  for (const auto& [path, colors] : {std::pair(made.train, std::vector<int>{1, 2, 250}),
                                     {made.test, std::vector<int>{11, 12, 13}}}) {
    caffe::Datum datum;
    ASSERT_TRUE(datum.ParseFromString(std::string(OpenCursor(GetParam(), path)->Value())));
    EXPECT_EQ(datum.height(), 36);
    EXPECT_EQ(datum.width(), 36);
    ASSERT_EQ(datum.data().size(), 3 * kSide * kSide);
    for (size_t i = 0; i < datum.data().size(); ++i) {
      const size_t y = i / kSide % kSide, x = i % kSide;
      const bool inside = x >= 2 && x < 34 && y >= 2 && y < 34;
      const int expected = inside ? colors[i / (kSide * kSide)] : 0;
      ASSERT_EQ(static_cast<unsigned char>(datum.data()[i]), expected) << i;
    }
  }
}

TEST_P(Cifar10Test, RefusesFilesOfAnotherLength) {
  for (const size_t length : {size_t{0}, size_t{3072}, size_t{3074}}) {
    WriteBytes(folder_ / "in/data_batch_2.bin", std::string(length, '\0'));
    EXPECT_THAT(Refusal(),
                Refuses(ErrorCode::kData,
                        Join("its ", length, " bytes are not a multiple of the record size")));
    ExpectNothingMade();
  }
}

TEST_P(Cifar10Test, RefusesLabelsAboveNine) {
  WriteBytes(folder_ / "in/test_batch.bin", CifarRecord(0, 1, 1, 1) + CifarRecord(10, 1, 1, 1));
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "record 1 has the label 10"));
  ExpectNothingMade();
}

TEST_P(Cifar10Test, NamesAMissingBatch) {
  std::filesystem::remove(folder_ / "in/data_batch_1.bin");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kNoInput, "data_batch_1.bin"));
  ExpectNothingMade();
  WriteBytes(folder_ / "in/data_batch_1.bin", CifarRecord(3, 1, 2, 3));
  std::filesystem::remove(folder_ / "in/test_batch.bin");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kNoInput, "test_batch.bin"));
  ExpectNothingMade();
}

TEST_P(Cifar10Test, LeavesAFolderThatWasThereAndTakesItsOwnAway) {
  std::filesystem::create_directory(folder_ / "old");
  std::filesystem::remove(folder_ / "in/data_batch_1.bin");
  WriteBytes(folder_ / "in/data_batch_1.bin", CifarRecord(11, 0, 0, 0));
  EXPECT_NE(Catch([&] { WriteCifar10(folder_ / "in", folder_ / "old/a/b", GetParam()); }).code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "old"));
}

TEST_P(Cifar10Test, NeverOverwrites) {
  WriteCifar10(folder_ / "in", folder_ / "out", GetParam());
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kCannotCreate, "already exists"));
}

// --- CIFAR-100 ---

TEST_P(Cifar10Test, Cifar100TakesTheFineOrTheCoarseLabel) {
  const std::string coarse(1, 19);
  WriteBytes(folder_ / "in/train.bin",
             coarse + CifarRecord(99, 1, 2, 3) + coarse + CifarRecord(0, 4, 5, 6));
  WriteBytes(folder_ / "in/test.bin", std::string(1, 3) + CifarRecord(42, 7, 8, 9));
  const Cifar10Files fine =
      WriteCifar100(folder_ / "in", folder_ / "fine", Cifar100Labels::kFine, GetParam());
  EXPECT_THAT(fine.train, HasSubstr("/fine/cifar100_train_l"));
  EXPECT_EQ(fine.train_records, 2);
  EXPECT_EQ(OpenCursor(GetParam(), fine.train)->Value(),
            MakeDatum(3, 32, 32, CifarRecord(99, 1, 2, 3).substr(1), 99).SerializeAsString());
  const Cifar10Files groups =
      WriteCifar100(folder_ / "in", folder_ / "coarse", Cifar100Labels::kCoarse, GetParam());
  EXPECT_EQ(OpenCursor(GetParam(), groups.test)->Value(),
            MakeDatum(3, 32, 32, CifarRecord(42, 7, 8, 9).substr(1), 3).SerializeAsString());
}

TEST_P(Cifar10Test, Cifar100RefusesFilesOfCifar10) {
  WriteBytes(folder_ / "in/train.bin", CifarRecord(1, 1, 1, 1));
  WriteBytes(folder_ / "in/test.bin", CifarRecord(1, 1, 1, 1));
  EXPECT_THAT(Catch([&] { WriteCifar100(folder_ / "in", folder_ / "out"); }),
              Refuses(ErrorCode::kData,
                      "not a multiple of the record size, 3074 bytes; is it a "
                      "batch file of CIFAR-100's"));
  ExpectNothingMade();
}

}  // namespace
}  // namespace trainer
