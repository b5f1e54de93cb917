// Tests class balancing: all classes are read equally often, however many records they have.

#include "balanced_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "input/every_source.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr PhiloxKey kBalancedKey{3, 4};
// The classes have 7, 2 and 1 records, which are not contiguous.
constexpr int32_t kUnbalancedLabels[] = {5, -1, 5, 5, 9, 5, 5, -1, 5, 5};

std::vector<uint32_t> BalancedEpoch(const BalancedOrder& order, uint64_t epoch) {
  std::vector<uint32_t> records;
  for (uint64_t place = 0; place < order.size(); ++place) {
    records.push_back(order.RecordAt(epoch, place));
  }
  return records;
}

// The orders are from balanced_order() in scripts/golden/philox.py.
TEST(BalancedOrderTest, GoldenOrders) {
  const BalancedOrder order(kUnbalancedLabels, kBalancedKey);
  EXPECT_THAT(BalancedEpoch(order, 0),
              ElementsAre(8, 4, 4, 7, 3, 2, 4, 9, 7, 4, 4, 0, 6, 4, 1, 7, 1, 7, 5, 1, 4));
  EXPECT_THAT(BalancedEpoch(order, 7),
              ElementsAre(7, 4, 1, 7, 4, 1, 4, 3, 4, 7, 9, 7, 6, 2, 4, 8, 0, 5, 4, 1, 4));
}

TEST(BalancedOrderTest, EachClassHasAsManyPlacesAsTheLargestHasRecords) {
  const BalancedOrder order(kUnbalancedLabels, kBalancedKey);
  EXPECT_EQ(order.records(), 10u);
  EXPECT_EQ(order.classes(), 3u);
  EXPECT_EQ(order.smallest(), 1u);
  EXPECT_EQ(order.largest(), 7u);
  ASSERT_EQ(order.size(), 21u);
  std::set<std::vector<uint32_t>> orders;
  std::map<uint32_t, int> with_the_odd_place;
  for (uint64_t epoch = 0; epoch < 50; ++epoch) {
    std::map<uint32_t, int> times;
    for (const uint32_t record : BalancedEpoch(order, epoch)) ++times[record];
    for (uint32_t record = 0; record < 10; ++record) {
      const int32_t label = kUnbalancedLabels[record];
      EXPECT_GE(times[record], label == 5 ? 1 : label == 9 ? 7 : 3);
      EXPECT_LE(times[record], label == 5 ? 1 : label == 9 ? 7 : 4);
    }
    EXPECT_EQ(times[1] + times[7], 7);
    ++with_the_odd_place[times[1] == 4 ? 1 : 7];
    orders.insert(BalancedEpoch(order, epoch));
  }
  EXPECT_THAT(orders, SizeIs(50));
  EXPECT_GT(with_the_odd_place[1], 10);
  EXPECT_GT(with_the_odd_place[7], 10);
}

TEST(BalancedOrderTest, EqualClassesGiveEachRecordOnce) {
  const std::vector<int32_t> labels = {1, 2, 3, 3, 2, 1};
  std::vector<uint32_t> records = BalancedEpoch(BalancedOrder(labels, kBalancedKey), 2);
  std::ranges::sort(records);
  EXPECT_THAT(records, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(BalancedEpoch(BalancedOrder(std::vector<int32_t>{4}, kBalancedKey), 3),
              ElementsAre(0));
}

// The largest class is spread evenly over an epoch. Otherwise a batch would contain only one class.
TEST(BalancedOrderTest, MixesTheClassesOfSortedRecords) {
  std::vector<int32_t> labels(100001, 0);
  labels.back() = 1;
  const BalancedOrder order(labels, kBalancedKey);
  EXPECT_EQ(order.size(), 200000u);
  for (uint64_t first = 0; first < order.size(); first += 20000) {
    int rare = 0;
    for (uint64_t place = first; place < first + 1000; ++place) {
      rare += order.RecordAt(1, place) == 100000 ? 1 : 0;
    }
    EXPECT_GT(rare, 420) << first;
    EXPECT_LT(rare, 580) << first;
  }
}

class BalancedSourceTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kRecords = 23;
  static int LabelOf(int record) { return record % 7 == 0 ? 2 : record % 11 == 1 ? 8 : 0; }
  std::unique_ptr<BatchQueue> Make(int batch_size, Rank rank = {}, int threads = 1) const {
    return source_.Make(GetParam(), batch_size, rank, threads);
  }
  // Returns the record numbers of the next batches, from their first pixels (see EverySource). In
  // pictures the first pixel is blue, which is larger by 14.
  static std::vector<int> RecordsByPixel(BatchQueue& source, int batches) {
    constexpr int kInverse = 223;  // of 31 modulo 256
    const bool is_picture = GetParam().starts_with("TAR") || GetParam().starts_with("images");
    std::vector<int> numbers;
    for (int i = 0; i < batches; ++i) {
      const Batch& batch = source.Next();
      const std::vector<float> values = Numbers(batch.output(0));
      const size_t image = values.size() / batch.output(1).size();
      for (size_t at = 0; at < values.size(); at += image) {
        const int value = static_cast<int>(values[at]) + 256 - (is_picture ? 14 : 0);
        numbers.push_back(value * kInverse % 256);
      }
    }
    return numbers;
  }

  EverySource source_{kRecords, 4, 5, LabelOf};  // 4 records of label 2, 2 of label 8, 17 of 0
};

INSTANTIATE_TEST_SUITE_P(Sources, BalancedSourceTest,
                         testing::ValuesIn(EverySource::BalancedKinds()), [](const auto& kind) {
                           return kind.param.substr(0, kind.param.find(' '));
                         });

TEST_P(BalancedSourceTest, GivesEachClassEquallyOftenAndEachRecordItsLabel) {
  const auto source = Make(3);
  EXPECT_EQ(source->CountRecords(false), 51);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::map<int, int> labels, records;
    const Position begin = source->position();
    for (const int record : RecordsByPixel(*source, 17)) ++records[record];
    const auto again = Make(3);
    again->Restore(begin);
    for (const int label : EverySource::Records(*again, 17)) ++labels[label];
    EXPECT_THAT(labels,
                ElementsAre(testing::Pair(0, 17), testing::Pair(2, 17), testing::Pair(8, 17)));
    EXPECT_THAT(records, SizeIs(kRecords));
    for (const auto& [record, times] : records) {
      const int label = LabelOf(record);
      EXPECT_GE(times, label == 0 ? 1 : label == 2 ? 4 : 8);
      EXPECT_LE(times, label == 0 ? 1 : label == 2 ? 5 : 9);
    }
    EXPECT_EQ(source->position().epoch, static_cast<uint64_t>(epoch + 1));
  }
}

// A run that changes its number of ranks and threads in the middle of epochs reads the same records
// as a run of one rank.
TEST_P(BalancedSourceTest, GoesOnWithOtherRanksAndThreads) {
  struct Leg {
    int ranks, batch_size, batches, threads;
  };
  const std::vector<int> order = RecordsByPixel(*Make(1), 125);
  Position position;
  size_t read = 0;
  for (const Leg& leg : {Leg{1, 5, 3, 1}, Leg{2, 3, 4, 2}, Leg{3, 2, 7, 4}, Leg{1, 9, 2, 3},
                         Leg{2, 2, 5, 1}, Leg{4, 1, 1, 2}}) {
    Position next;
    for (int rank = 0; rank < leg.ranks; ++rank) {
      const auto source = Make(leg.batch_size, {rank, leg.ranks}, leg.threads);
      source->Restore(position);
      const std::vector<int> records = RecordsByPixel(*source, leg.batches);
      for (size_t k = 0; k < records.size(); ++k) {
        const size_t at = read + k * static_cast<size_t>(leg.ranks) + static_cast<size_t>(rank);
        EXPECT_EQ(records[k], order[at]) << "record " << at;
      }
      next = source->position();
    }
    position = next;
    read += static_cast<size_t>(leg.ranks * leg.batch_size * leg.batches);
    EXPECT_EQ(position.record, read);
  }
  EXPECT_EQ(read, 123u);
}

TEST_P(BalancedSourceTest, APositionNamesTheEpochAndThePlace) {
  const auto source = Make(4);
  for (int i = 0; i < 13; ++i) source->Next();
  EXPECT_EQ(source->position().Encode(), "1 52 1 balanced 1 place 1 of 51 records 23");
  Position other = source->position();
  other.key = "balanced 1 place 1 of 60 records 25";
  EXPECT_THAT(
      Catch([&] { Make(4)->Restore(other); }).text,
      HasSubstr("the set has 23 records now, 51 in a balanced epoch, but had 25 and 60 when "
                "the snapshot was made; use the data set of that run"));
  other.key = "shuffled 0 place 12 of 23 extent 1 window 5";
  EXPECT_THAT(Catch([&] { Make(4)->Restore(other); }).text,
              HasSubstr("'shuffled 0 place 12 of 23 extent 1 window 5', which is not a position in "
                        "a balanced epoch; set sampling as in the run of the snapshot"));
}

TEST_P(BalancedSourceTest, NamesTheRecordOfABatch) {
  const auto source = Make(2);
  const int record = RecordsByPixel(*source, 1)[1];
  const std::string name = source->RecordName(1);
  const std::string kind = GetParam().substr(0, GetParam().find(' '));
  const std::string expected = kind == "TAR"      ? Join("/p", record, "' of ")
                               : kind == "images" ? Join(" 'p", record, ".ppm' of ")
                                                  : Join("record '", Key8(record), "' of ");
  EXPECT_THAT(name, HasSubstr(expected));
}

TEST_P(BalancedSourceTest, IsRefusedInATest) {
  const InputEnv env{caffe::TEST, {1, 2}, {}, 1};
  EXPECT_THAT(Catch([&] { source_.Make(GetParam(), 2, "", env); }).text,
              testing::AllOf(testing::StartsWith("net.prototxt:1:"),
                             HasSubstr("sampling: BALANCED repeats records of small classes, and a "
                                       "test must count each record once; limit this layer to "
                                       "training with include { phase: TRAIN }")));
}

class BalancedDatabaseTest : public testing::Test {
 protected:
  std::string Refusal(const std::string& fields, const std::string& name = "db") const {
    const LayerSpec& layer = KeptLayer(
        Join("name: 'd' type: 'Data' top: 'x' data_param { batch_size: 1 backend: LMDB source: '",
             folder_ / name, "' sampling: BALANCED ", fields, " }"));
    const InputEnv env{caffe::TRAIN, {1, 2}, {}, 1};
    return Catch([&] { OpenDatabase(layer, env); }).text;
  }
  TempFolder folder_;
};

TEST_F(BalancedDatabaseTest, RefusesAWindow) {
  WriteDb("LMDB", folder_ / "db", NumberedRecords(3));
  EXPECT_THAT(Refusal("shuffle: true shuffle_window: 100"),
              HasSubstr("layer 'd' (Data): shuffle_window has no effect with sampling: BALANCED, "
                        "which draws from the whole set; remove one of them"));
  EXPECT_EQ(Refusal("shuffle: true"), "");
}

TEST_F(BalancedDatabaseTest, RefusesALimit) {
  WriteDb("LMDB", folder_ / "db", NumberedRecords(3));
  EXPECT_THAT(Refusal("limit: 2"), HasSubstr("sampling: BALANCED cannot be combined with limit "
                                             "(--limit): the first records may lack whole "
                                             "classes; remove one of the two"));
}

TEST_F(BalancedDatabaseTest, RefusesRecordsWithoutALabelAndDamagedOnes) {
  Records records = NumberedRecords(3);
  caffe::Datum datum = MakeDatum(1, 1, 1, "x", 0);
  datum.clear_label();
  records[1].second = datum.SerializeAsString();
  WriteDb("LMDB", folder_ / "db", records);
  EXPECT_THAT(Refusal(""),
              HasSubstr("db: record '00000001' has no label that is an integer, so its class is "
                        "unknown; label the records, or remove what asks for classes"));
  records[1].second = "no datum";
  WriteDb("LMDB", folder_ / "damaged", records);
  EXPECT_THAT(Refusal("", "damaged"),
              HasSubstr("damaged: record '00000001' is not a Datum: its 8 bytes cannot"));
}

}  // namespace
}  // namespace trainer
