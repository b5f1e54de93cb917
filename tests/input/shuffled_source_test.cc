// Tests databases in a random order that needs no random reads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "input/every_source.h"
#include "shuffled_sampler.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr PhiloxKey kShuffledSourceKey{3, 4};

std::vector<uint64_t> EpochOf(const ShuffleLayout& layout, uint64_t epoch) {
  const ExtentOrder extents(layout, kShuffledSourceKey, epoch);
  std::vector<uint64_t> records;
  std::vector<uint32_t> order;
  for (uint64_t window = 0; window * layout.window < layout.records; ++window) {
    OrderWindow(layout, kShuffledSourceKey, epoch, window, &order);
    for (const uint32_t at : order)
      records.push_back(extents.RecordAt(window * layout.window + at));
  }
  return records;
}

TEST(ShuffledOrderTest, HasEachRecordOnceInEveryEpochWhateverTheSizes) {
  for (const uint64_t records : {1, 2, 7, 64, 100, 101}) {
    for (const uint64_t extent : {1, 3, 10}) {
      for (const uint64_t window : {1, 4, 33, 200}) {
        const ShuffleLayout layout{records, std::min(extent, records), std::min(window, records)};
        for (const uint64_t epoch : {0, 1, 2}) {
          std::vector<uint64_t> seen = EpochOf(layout, epoch);
          std::ranges::sort(seen);
          std::vector<uint64_t> all(records);
          std::iota(all.begin(), all.end(), 0);
          EXPECT_EQ(seen, all) << records << " " << extent << " " << window;
        }
      }
    }
  }
}

TEST(ShuffledOrderTest, DiffersFromEpochToEpochAndFollowsFromTheKey) {
  const ShuffleLayout layout{100, 4, 32};
  EXPECT_EQ(EpochOf(layout, 5), EpochOf(layout, 5));
  EXPECT_NE(EpochOf(layout, 5), EpochOf(layout, 6));
  EXPECT_NE(ExtentOrder(layout, kShuffledSourceKey, 0).RecordAt(0),
            ExtentOrder(layout, {9, 4}, 0).RecordAt(0));
}

TEST(ShuffledOrderTest, ReadsExtentsFromTheirStartToTheirEnd) {
  const ExtentOrder order({50, 8, 16}, kShuffledSourceKey, 3);
  int jumps = 0;
  for (uint64_t place = 1; place < 50; ++place) {
    jumps += order.RecordAt(place) != order.RecordAt(place - 1) + 1;
  }
  EXPECT_LE(jumps, 6);
}

TEST(ShuffledOrderTest, TheWindowIsWhatFitsInMemory) {
  EXPECT_EQ(ChooseLayout(60000, 800, 0), (ShuffleLayout{60000, 60000, 60000}));  // all of MNIST
  const ShuffleLayout imagenet = ChooseLayout(1281167, 110000, 0);
  EXPECT_EQ(imagenet.window, (64u << 20) / 110000);
  EXPECT_EQ(imagenet.extent, (1u << 20) / 110000);
  EXPECT_EQ(ChooseLayout(1000, 1, 100).window, 100u);
  EXPECT_EQ(ChooseLayout(10, 1, 100).window, 10u);
}

class ShuffledSourceTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kRecords = 23;
  std::unique_ptr<BatchQueue> Make(int batch_size, Rank rank = {}, int threads = 1) const {
    return source_.Make(GetParam(), batch_size, rank, threads);
  }
  EverySource source_{kRecords};
};

INSTANTIATE_TEST_SUITE_P(Backends, ShuffledSourceTest,
                         testing::Values("LMDB in random order", "LEVELDB in random order",
                                         "TAR in random order"),
                         [](const auto& kind) {
                           return kind.param.substr(0, kind.param.find(' '));
                         });

TEST_P(ShuffledSourceTest, GivesEachRecordOnceInEveryEpochInANewOrder) {
  const auto source = Make(1);
  std::set<std::vector<int>> orders;
  for (int epoch = 0; epoch < 5; ++epoch) {
    std::vector<int> records = EverySource::Records(*source, kRecords);
    orders.insert(records);
    EXPECT_FALSE(std::ranges::is_sorted(records));
    std::ranges::sort(records);
    std::vector<int> all(kRecords);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(records, all);
  }
  EXPECT_EQ(orders.size(), 5u);
}

// The run changes its number of ranks and threads in the middle of epochs.
TEST_P(ShuffledSourceTest, CountsEachRecordOnceOverResumesWithOtherRanksAndThreads) {
  struct Leg {
    int ranks, batch_size, batches, threads;
  };
  std::map<int, int> times;
  Position position;
  int read = 0;
  for (const Leg& leg : {Leg{1, 5, 3, 1}, Leg{2, 3, 4, 2}, Leg{3, 2, 7, 4}, Leg{1, 9, 2, 3},
                         Leg{2, 2, 5, 1}, Leg{3, 1, 2, 2}}) {
    Position next;
    for (int rank = 0; rank < leg.ranks; ++rank) {
      const auto source = Make(leg.batch_size, {rank, leg.ranks}, leg.threads);
      source->Restore(position);
      for (const int record : EverySource::Records(*source, leg.batches)) ++times[record];
      next = source->position();
    }
    position = next;
    read += leg.ranks * leg.batch_size * leg.batches;
    EXPECT_EQ(position.record, static_cast<uint64_t>(read));
    EXPECT_EQ(position.epoch, static_cast<uint64_t>(read / kRecords));
  }
  ASSERT_EQ(read, 15 + 24 + 42 + 18 + 20 + 6);
  int epochs_and_more = 0;
  for (int record = 0; record < kRecords; ++record) {
    EXPECT_GE(times[record], read / kRecords) << record;
    epochs_and_more += times[record] - read / kRecords;
  }
  EXPECT_EQ(epochs_and_more, read % kRecords);
}

TEST_P(ShuffledSourceTest, KeepsTheWindowOfTheSnapshot) {
  const auto source = Make(4);
  const std::vector<int> order = EverySource::Records(*Make(1), 40);
  for (int i = 0; i < 3; ++i) source->Next();
  EXPECT_EQ(source->position().key, "shuffled 0 place 12 of 23 extent 1 window 5");
  Position other = source->position();
  other.key = "shuffled 0 place 12 of 23 extent 4 window 11";
  const auto wide = Make(4);
  wide->Restore(other);
  wide->Next();
  EXPECT_EQ(wide->position().key, "shuffled 0 place 16 of 23 extent 4 window 11");
}

TEST_P(ShuffledSourceTest, RefusesPositionsOfOtherData) {
  const auto source = Make(4);
  EXPECT_THAT(Catch([&] {
                source->Restore({12, 0, "shuffled 0 place 12 of 24 extent 1 window 5"});
              }),
              Refuses(ErrorCode::kBadSnapshot, "has 23 records now, but had 24 when the snapshot"));
  for (const char* key : {"00000003", "shuffled 0 place 24 of 23 extent 1 window 5",
                          "shuffled 0 place 1 of 23 extent 0 window 5"}) {
    EXPECT_THAT(Catch([&] {
                  source->Restore({12, 0, key});
                }),
                Refuses(ErrorCode::kBadSnapshot, "is not a position in a shuffled epoch"));
  }
}

TEST_P(ShuffledSourceTest, NamesTheRecordOfAnItem) {
  const auto source = Make(4);
  for (int i = 0; i < 2; ++i) source->Next();
  const auto label = static_cast<int>(source->Next().output(1)[2]);
  const std::string name = GetParam().starts_with("TAR") ? Join("/p", label, "'") : Key8(label);
  EXPECT_THAT(source->RecordName(2), HasSubstr(name));
}

}  // namespace
}  // namespace trainer
