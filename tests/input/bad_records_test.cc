// Tests --bad_records=skip: which record replaces one that cannot be decoded.

#include "trainer/input/bad_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "input/every_source.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kBadRecordsRecords = 12;

// Writes sets of image files. Some of the files are truncated.
class BadRecordsTest : public testing::TestWithParam<std::string> {
 protected:
  BadRecordsTest() { SetMaxBadRecords(100); }
  ~BadRecordsTest() override { SetMaxBadRecords(-1); }

  void Write(const std::set<int>& bad) {
    Records records;
    std::string list, tar;
    const std::string good = Picture("rgb.jpg");
    for (int i = 0; i < kBadRecordsRecords; ++i) {
      const std::string picture = bad.contains(i) ? good.substr(0, good.size() - 30) : good;
      caffe::Datum datum;
      datum.set_encoded(true);
      datum.set_data(picture);
      datum.set_label(i);
      records.emplace_back(Key8(i), datum.SerializeAsString());
      WriteBytes(folder_ / Join(i, ".jpg"), picture);
      list += Join(i, ".jpg ", i, "\n");
      tar += TarEntryText(Join(i, ".jpg"), picture) + TarEntryText(Join(i, ".cls"), Join(i));
    }
    for (const char* backend : {"LMDB", "LEVELDB"}) WriteDb(backend, folder_ / backend, records);
    WriteBytes(folder_ / "list", list);
    WriteBytes(folder_ / "TAR", tar + TarEnd());
  }
  std::unique_ptr<BatchQueue> Make(int batch_size, Rank rank = {}, int threads = 1) const {
    const std::string kind = GetParam().substr(0, GetParam().find(' '));
    const std::string tops = "name: 'd' top: 'x' top: 'y' transform_param { mirror: true } ";
    const std::string shuffle = GetParam() == kind ? "" : " shuffle: true shuffle_window: 5";
    const std::string size = Join(" batch_size: ", batch_size);
    const InputEnv env{caffe::TRAIN, {1, 2}, rank, threads};
    if (kind == "images") {
      return OpenImageList(
          KeptLayer(tops + "type: 'ImageData' image_data_param { source: '" + (folder_ / "list") +
                    "' root_folder: '" + (folder_ / "") + "'" + size + " }"),
          env);
    }
    return OpenDatabase(KeptLayer(tops + "type: 'Data' data_param { backend: " + kind +
                                  " source: '" + (folder_ / kind) + "'" + size + shuffle + " }"),
                        env);
  }
  // Returns the record numbers, and adds the number of skipped records to *bad.
  std::vector<int> Read(BatchQueue& source, int batches, int64_t* bad) const {
    std::vector<int> numbers;
    for (int i = 0; i < batches; ++i) {
      const Batch& batch = source.Next();
      *bad += batch.bad;
      for (const float label : batch.output(1)) numbers.push_back(static_cast<int>(label));
    }
    return numbers;
  }

  TempFolder folder_;
};

std::string NameOfBadRecords(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Sources, BadRecordsTest,
                         testing::Values("LMDB", "LEVELDB", "TAR", "images", "LMDB shuffled",
                                         "LEVELDB shuffled", "TAR shuffled"),
                         NameOfBadRecords);

TEST_P(BadRecordsTest, TheNextGoodRecordComesInTheirPlace) {
  Write({});
  int64_t none = 0;
  const std::vector<int> order = Read(*Make(6), 4, &none);
  EXPECT_EQ(none, 0);
  const std::set<int> bad = {order[2], order[3], order[8]};
  for (const char* old : {"LMDB", "LEVELDB"}) std::filesystem::remove_all(folder_ / old);
  Write(bad);
  std::vector<int> want = order;
  for (size_t i = want.size(); i-- > 0;) {
    if (bad.contains(want[i]) && i + 1 < want.size()) want[i] = want[i + 1];
  }
  const LogLines log;
  int64_t skipped = 0;
  const std::vector<int> got = Read(*Make(6), 3, &skipped);
  EXPECT_EQ(got, std::vector(want.begin(), want.begin() + 18));
  EXPECT_GE(skipped, 3);
  EXPECT_THAT(log.Get(), Contains(testing::AllOf(HasSubstr("record number 2 and used the next"),
                                                 HasSubstr("JPEG"))));
}

TEST_P(BadRecordsTest, NeitherThreadsNorRanksNorResumesChangeWhatComes) {
  Write({2, 3, 4, 9});
  int64_t bad = 0;
  const std::vector<int> alone = Read(*Make(1), 48, &bad);
  EXPECT_EQ(bad, 4 * 4);
  for (const int threads : {1, 2, 4}) {
    int64_t skipped = 0;
    const auto first = Make(6, {}, threads);
    std::vector<int> seen = Read(*first, 3, &skipped);
    const auto second = Make(10, {}, 3);
    second->Restore(first->position());
    for (const int record : Read(*second, 3, &skipped)) seen.push_back(record);
    EXPECT_EQ(seen, alone) << threads;
    EXPECT_EQ(skipped, 16);
  }
  for (const int ranks : {2, 3}) {
    int64_t skipped = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto source = Make(4, {rank, ranks}, 2);
      const std::vector<int> seen = Read(*source, 12 / ranks, &skipped);
      for (size_t k = 0; k < seen.size(); ++k) {
        EXPECT_EQ(seen[k], alone[k * static_cast<size_t>(ranks) + static_cast<size_t>(rank)]);
      }
    }
    EXPECT_EQ(skipped, 16);
  }
}

TEST_P(BadRecordsTest, TheFirstRecordMayBeBad) {
  Write({0, 1});
  int64_t bad = 0;
  const auto source = Make(4);
  EXPECT_EQ(source->shape(), (Shape{4, 3, 7, 11}));
  Read(*source, 3, &bad);
  EXPECT_EQ(bad, 2);
}

TEST_P(BadRecordsTest, ASetWithoutAGoodRecordEndsWithTheFirstOnesError) {
  std::set<int> all;
  for (int i = 0; i < kBadRecordsRecords; ++i) all.insert(i);
  Write(all);
  EXPECT_THAT(Catch([&] { Make(4); }), Refuses(ErrorCode::kData, "JPEG"));
}

TEST_P(BadRecordsTest, WithoutSkippingTheFirstOneEndsTheReading) {
  SetMaxBadRecords(-1);
  Write({5});
  EXPECT_THAT(Catch([&] {
                const auto source = Make(1);
                for (int i = 0; i < kBadRecordsRecords; ++i) source->Next();
              }),
              Refuses(ErrorCode::kData, "JPEG"));
}

TEST(BadPositionTest, TheCountOfTheEpochIsInTheSnapshot) {
  const Position position{12, 1, "key 3", 7};
  EXPECT_EQ(position.Encode(), "2 12 1 7 key 3");
  EXPECT_EQ(Position::Decode(position.Encode()), position);
  EXPECT_THAT(Catch([] { Position::Decode("2 12 1 key"); }),
              Refuses(ErrorCode::kBadSnapshot,
                      "is not in the format of this program; start from "
                      "the weights with --weights"));
}

}  // namespace
}  // namespace trainer
