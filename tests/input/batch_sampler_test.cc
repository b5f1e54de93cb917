// Tests that replicas share a source's records, and that one position is valid for all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "input/every_source.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr int kReplicasRecords = 13;

class ReplicasTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<BatchQueue> Make(int batch_size, Rank rank = {}) const {
    return source_.Make(GetParam(), batch_size, rank);
  }
  // Returns the records that one replica reads, in order.
  std::vector<int> Order(int records) const { return EverySource::Records(*Make(1), records); }

  // Returns the batch of `rank` after batch i.
  static int Next(int i, int rank, int count, int period) {
    return i % period + count < period ? i + count : (i / period + 1) * period + rank;
  }

  EverySource source_{kReplicasRecords};
};

TEST_P(ReplicasTest, RecordKGoesToRankKModuloCountAcrossEpochs) {
  const std::vector<int> order = Order(12 * 7);
  for (const int ranks : {2, 3, 7}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto source = Make(2, {rank, ranks});
      const std::vector<int> seen = EverySource::Records(*source, 6);
      for (int k = 0; k < 12; ++k) {
        EXPECT_EQ(seen[static_cast<size_t>(k)], order[static_cast<size_t>(k * ranks + rank)]);
      }
    }
  }
}

TEST_P(ReplicasTest, AllHaveOnePosition) {
  const auto alone = Make(2 * 4);
  std::vector<std::unique_ptr<BatchQueue>> replicas;
  for (int rank = 0; rank < 4; ++rank) replicas.push_back(Make(2, {rank, 4}));
  for (int step = 0; step < 5; ++step) {
    alone->Next();
    for (const auto& rank : replicas) {
      rank->Next();
      EXPECT_EQ(rank->position(), alone->position());
    }
  }
}

TEST_P(ReplicasTest, RankZerosSnapshotRepeatsNoRecordOnTheOtherRanks) {
  const std::vector<int> order = Order(32);
  const auto first = Make(2, {0, 4});
  for (int step = 0; step < 3; ++step) first->Next();
  const std::string saved = first->position().Encode();
  for (int rank = 0; rank < 4; ++rank) {
    const auto resumed = Make(2, {rank, 4});
    resumed->Restore(Position::Decode(saved));
    EXPECT_THAT(
        EverySource::Records(*resumed, 1),
        ElementsAre(order[static_cast<size_t>(24 + rank)], order[static_cast<size_t>(28 + rank)]))
        << "rank " << rank;
  }
}

TEST_P(ReplicasTest, ASnapshotGoesOnWithAnotherNumberOfReplicasAndBatchSize) {
  const std::vector<int> order = Order(100);
  struct Run {
    int ranks, batch_size, batches;
  };
  size_t read = 0;
  Position position = Make(1)->position();
  for (const Run& run : {Run{4, 2, 3}, Run{3, 2, 2}, Run{1, 5, 1}, Run{5, 1, 3}, Run{2, 3, 2}}) {
    Position next;
    for (int rank = 0; rank < run.ranks; ++rank) {
      const auto source = Make(run.batch_size, {rank, run.ranks});
      source->Restore(position);
      const std::vector<int> seen = EverySource::Records(*source, run.batches);
      for (size_t k = 0; k < seen.size(); ++k) {
        const size_t at = read + k * static_cast<size_t>(run.ranks) + static_cast<size_t>(rank);
        EXPECT_EQ(seen[k], order[at]) << "record " << at << " of " << run.ranks << " replicas";
      }
      next = source->position();
    }
    position = next;
    read += static_cast<size_t>(run.ranks * run.batch_size * run.batches);
    EXPECT_EQ(position.record, read);
    EXPECT_EQ(position.epoch, read / kReplicasRecords);
  }
}

// A combined batch holds the batches of neighbouring ranks, each as that rank alone would read it.
TEST_P(ReplicasTest, PartsReadTogetherAreTheBatchesOfSoManyReplicas) {
  constexpr int kRanks = 4, kBatch = 3, kBatches = 4;
  const bool rows = GetParam().starts_with("rows");
  const std::string transform = rows ? "" : "mirror: true crop_size: 3";
  const auto outputs = [](const Batch& batch, int i, int part, int parts) {
    const std::vector<float> all = Numbers(batch.output(i));
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / parts;
    return std::vector(all.begin() + part * size, all.begin() + (part + 1) * size);
  };
  for (const int threads : {1, 3}) {
    for (const int parts : {2, 4}) {
      for (int first = 0; first < kRanks; first += parts) {
        const auto together =
            source_.Make(GetParam(), kBatch, {first, kRanks}, threads, transform, parts);
        EXPECT_EQ(together->shape(0)[0], kBatch);
        std::vector<std::unique_ptr<BatchQueue>> alone;
        for (int part = 0; part < parts; ++part) {
          alone.push_back(
              source_.Make(GetParam(), kBatch, {first + part, kRanks}, threads, transform));
        }
        for (int i = 0; i < kBatches; ++i) {
          const Batch& all = together->Next();
          for (int part = 0; part < parts; ++part) {
            const Batch& own = alone[static_cast<size_t>(part)]->Next();
            EXPECT_EQ(outputs(all, 0, part, parts), outputs(own, 0, 0, 1));
            EXPECT_EQ(outputs(all, 1, part, parts), outputs(own, 1, 0, 1));
          }
          EXPECT_EQ(together->position(), alone[0]->position());
        }
        for (const int item : {0, 2}) {
          EXPECT_EQ(together->RecordName(kBatch + item), alone[1]->RecordName(item));
        }
      }
    }
  }
}

// A test of five batches gives whole batches to each rank, in the order of one rank.
TEST_P(ReplicasTest, ShareWholeBatchesOfEachPeriod) {
  constexpr int kPeriod = 5, kBatch = 3, kPeriods = 4;
  const auto alone = Make(kBatch);
  std::vector<std::vector<int>> batches;
  std::vector<Position> ends;
  for (int i = 0; i < kPeriods * kPeriod; ++i) {
    batches.push_back(EverySource::Records(*alone, 1));
    ends.push_back(alone->position());
  }
  for (const int count : {2, 3, 4, 5, 8}) {
    for (int rank = 0; rank < std::min(count, kPeriod); ++rank) {
      const auto source = Make(kBatch);
      source->SetTestShard({rank, count, kPeriod});
      for (int i = rank; i < kPeriods * kPeriod; i = Next(i, rank, count, kPeriod)) {
        const auto at = static_cast<size_t>(i);
        EXPECT_EQ(EverySource::Records(*source, 1), batches[at]) << count << " " << rank;
        if (rank > 0) continue;  // rank 0's position after a round is everyone's
        const int end = std::min(i % kPeriod + count, kPeriod) + i / kPeriod * kPeriod;
        EXPECT_EQ(source->position(), ends[static_cast<size_t>(end) - 1]) << count << " " << i;
      }
    }
  }
}

TEST_P(ReplicasTest, NameTheRecordsOfASharedBatch) {
  const auto alone = Make(3), source = Make(3);
  source->SetTestShard({1, 2, 5});
  for (int i = 0; i < 4; ++i) alone->Next();
  source->Next();
  source->Next();
  EXPECT_EQ(source->RecordName(2), alone->RecordName(2));
}

std::string NameOfReplicas(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Sources, ReplicasTest, testing::ValuesIn(EverySource::Kinds()),
                         NameOfReplicas);
INSTANTIATE_TEST_SUITE_P(Balanced, ReplicasTest, testing::ValuesIn(EverySource::BalancedKinds()),
                         NameOfReplicas);

TEST(OldPositionsTest, ThoseOfOneReplicaGoOnAsTheyDid) {
  const EverySource source(kReplicasRecords);
  for (const std::string& kind : EverySource::Kinds()) {
    const bool random = kind.ends_with("order");
    if (random && !kind.starts_with("images") && !kind.starts_with("rows")) continue;  // new
    const std::string saved = kind.starts_with("images") ? "1 15 1 epoch 1 line 3 p2.ppm"
                              : kind.starts_with("rows") ? "1 15 1 13"
                              : kind == "TAR"            ? "1 15 1 tar-0.tar/p2"
                                                         : "1 15 1 00000002";
    const auto resumed = source.Make(kind, 4);
    resumed->Restore(Position::Decode(saved));
    EXPECT_EQ(resumed->position().Encode(), saved);
    const std::vector<int> records = EverySource::Records(*resumed, 1);
    if (!random) {
      EXPECT_THAT(records, ElementsAre(2, 3, 4, 5)) << kind;
    } else if (kind.starts_with("images")) {
      EXPECT_EQ(records[0], 2);
    }
    EXPECT_EQ(resumed->position().record, 19u);
    EXPECT_EQ(resumed->position().epoch, 1u);
  }
}

TEST(OldPositionsTest, EachFormOfATextGoesOn) {
  const EverySource source(kReplicasRecords);
  const std::pair<std::string, std::string> texts[] = {
      {"LMDB in random order", "1 15 1 shuffled 1 place 2 of 13 extent 1 window 5"},
      {"images in random order", "2 15 1 3 epoch 1 line 3 p2.ppm"},
      {"rows in random order", "1 15 1 13"},
      {"TAR", "2 15 1 3 tar-0.tar/p2"},
      {"memory", "1 15 1 image 2 of 13"},
      {"windows", "1 15 0 window 15"}};
  for (const auto& [kind, saved] : texts) {
    const InputEnv env{caffe::TRAIN, {1, 2}, {}, 1};
    const auto begun = source.Make(kind, 3, "crop_size: 3 mirror: true", env);
    const auto resumed = source.Make(kind, 3, "crop_size: 3 mirror: true", env);
    resumed->Restore(Position::Decode(saved));
    EXPECT_EQ(resumed->position().Encode(), saved);
    for (int i = 0; i < 5; ++i) begun->Next();
    for (int i = 0; i < 2; ++i) {
      const Batch &expected = begun->Next(), &got = resumed->Next();
      EXPECT_EQ(Numbers(got.output(0)), Numbers(expected.output(0))) << kind;
      EXPECT_EQ(Numbers(got.output(1)), Numbers(expected.output(1))) << kind;
    }
    EXPECT_EQ(resumed->position().key, begun->position().key);
  }
}

TEST(WindowReplicasTest, ABatchHoldsBackgroundThenForegroundWhateverTheNumberOfReplicas) {
  EverySource source(3);
  Position position;
  for (const auto& [ranks, batch_size] : {std::pair(4, 2), std::pair(3, 4), std::pair(2, 6)}) {
    Position next;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto windows = source.MakeWindows(batch_size, {rank, ranks});
      windows->Restore(position);
      const std::vector<float> labels = Numbers(windows->Next().output(1));
      const auto middle = labels.begin() + batch_size / 2;
      EXPECT_THAT(std::vector(labels.begin(), middle), Each(0));
      EXPECT_THAT(std::vector(middle, labels.end()), Each(testing::Gt(0)));
      next = windows->position();
    }
    position = next;
  }
  EXPECT_EQ(position.Encode(), "1 32 0 window 32");
}

TEST(WindowReplicasTest, PartsReadTogetherHaveBackgroundThenForegroundEach) {
  EverySource source(3);
  const auto together = source.MakeWindows(4, {0, 2}, 1, 2);
  const auto first = source.MakeWindows(4, {0, 2}), second = source.MakeWindows(4, {1, 2});
  std::vector<float> both = Numbers(first->Next().output(0));
  for (const float number : Numbers(second->Next().output(0))) both.push_back(number);
  EXPECT_EQ(Numbers(together->Next().output(0)), both);
}

}  // namespace
}  // namespace trainer
