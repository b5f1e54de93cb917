// The records that ranks train on, counted by a net's weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/db.h>

#include <filesystem>
#include <numeric>

#include "datum.pb.h"
#include "rank_job.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// The record's number is its label, and the label's row of the Embed layer has one weight. The loss
// is the sum of the rows of a batch, and the rate is the number of ranks: an iteration subtracts
// from each weight the number of times its record was seen.
constexpr char kCounter[] = R"(
layer { name: "silence" type: "Silence" bottom: "data" }
layer { name: "seen" type: "Embed" bottom: "label" top: "seen"
        embed_param { input_dim: 13 num_output: 1 bias_term: false } }
layer { name: "sum" type: "Reduction" bottom: "seen" top: "sum" loss_weight: 1 }
)";

class RankDataTest : public RankJob {
 protected:
  static constexpr int kRecords = 13;

  // Returns pixels that depend only on the record's number.
  static std::string Pixels(int i) { return std::string(12, static_cast<char>(i)); }

  void WriteDatabase(const std::string& backend, int records = kRecords) {
    const auto writer = CreateDb(backend, job_.folder() / backend);
    for (int i = 0; i < records; ++i) {
      caffe::Datum datum;
      datum.set_channels(3);
      datum.set_height(2);
      datum.set_width(2);
      datum.set_data(Pixels(i));
      datum.set_label(i);
      writer->Put(Join("key", i / 10, i % 10), datum.SerializeAsString());
    }
    writer->Commit();
  }

  void WriteImages() {
    std::string list;
    for (int i = 0; i < kRecords; ++i) {
      WriteText(job_.folder() / Join("p", i, ".ppm"), "P6 2 2 255\n" + Pixels(i));
      list += Join("p", i, ".ppm ", i, "\n");
    }
    WriteText(job_.folder() / "images", list);
  }

  void WriteRows() {
    std::string list;
    for (const auto& [first, end] : {std::pair(0, 5), std::pair(5, kRecords)}) {
      const std::string name = Join("rows", first, ".h5");
      Hdf5Appender file(job_.folder() / name);
      std::vector<float> labels(static_cast<size_t>(end - first));
      std::iota(labels.begin(), labels.end(), static_cast<float>(first));
      const std::vector<int64_t> dims{end - first};
      file.Append("data", dims, labels);
      file.Append("label", dims, labels);
      file.Flush();
      list += name + "\n";
    }
    WriteText(job_.folder() / "rows", list);
  }

  // `type` and `param` are the type and message of the data layer.
  void WriteJob(const std::string& type, const std::string& param, const std::string& fields,
                int batch_size) {
    job_.net = Join("layer { name: \"records\" type: \"", type, "\" top: \"data\" top: \"label\" ",
                    param, " { ", fields, " batch_size: ", batch_size, " } }", kCounter);
    job_.solver =
        "net: \"net.prototxt\" lr_policy: \"fixed\" momentum: 0 weight_decay: 0 display: 0 "
        "snapshot: 1 snapshot_prefix: \"snap\" random_seed: 3 max_iter: 1 base_lr: 1";
    job_.Write();
  }

  void WriteKind(const std::string& kind, int batch_size) {
    const std::string more = kind.find("shuffled") != kind.npos  ? " shuffle: true"
                             : kind.find("skipped") != kind.npos ? " rand_skip: 9"
                                                                 : "";
    if (kind.starts_with("images")) {
      WriteImages();
      WriteJob("ImageData", "image_data_param", "source: \"images\"" + more, batch_size);
    } else if (kind.starts_with("rows")) {
      WriteRows();
      WriteJob("HDF5Data", "hdf5_data_param", "source: \"rows\"" + more, batch_size);
    } else {
      WriteDatabase(kind);
      WriteJob("Data", "data_param", Join("source: \"", kind, "\" backend: ", kind), batch_size);
    }
  }

  // Trains to iteration `to` from the snapshot of iteration `from`.
  Outcome TrainOn(int ranks, int from, int to, std::vector<std::string> more = {}) {
    more.push_back(Join("--ranks=", ranks));
    more.insert(more.end(), {"--set", Join("base_lr=", ranks), "--set", Join("max_iter=", to)});
    if (from > 0) more.push_back(Join("--snapshot=snap_iter_", from, ".solverstate"));
    const Outcome outcome = Train(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }

  // Returns the number of times each record was seen up to an iteration.
  std::vector<int> Counts(int iteration) const {
    std::vector<int> counts;
    for (const float weight : Weights(Join("snap_iter_", iteration, ".caffemodel"))) {
      counts.push_back(static_cast<int>(-std::lround(weight)));
    }
    return counts;
  }

  // Expects counts of `records` consecutive records, each epoch in its own order: two counts differ
  // by at most one.
  static void ExpectEven(const std::vector<int>& counts, int records) {
    ASSERT_EQ(counts.size(), static_cast<size_t>(kRecords));
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), records);
    const int epochs = records / kRecords;
    EXPECT_THAT(counts, Each(testing::AnyOf(epochs, epochs + 1)));
  }
};

struct Stage {
  int ranks, to;
};
constexpr Stage kStages[] = {{4, 5}, {1, 7}, {3, 13}, {2, 16}};

class RankRecordsTest : public RankDataTest, public testing::WithParamInterface<std::string> {};

// An iteration has 12 records and an epoch 13, so every batch but the thirteenth crosses its end.
TEST_P(RankRecordsTest, AreThoseOfARunAloneInEachIterationWhateverTheNumberOfRanks) {
  WriteKind(GetParam(), 12);
  TrainOn(1, 0, 16);
  std::vector<std::vector<int>> alone(1);
  for (int iteration = 1; iteration <= 16; ++iteration) alone.push_back(Counts(iteration));
  int from = 0;
  for (const Stage& stage : kStages) {
    TrainOn(stage.ranks, from, stage.to, {"--global_batch"});
    for (int iteration = from + 1; iteration <= stage.to; ++iteration) {
      EXPECT_EQ(Counts(iteration), alone[static_cast<size_t>(iteration)]) << iteration;
    }
    from = stage.to;
  }
  if (GetParam() == "images skipped") return;  // its first epoch is shorter
  for (int iteration = 1; iteration <= 16; ++iteration)
    ExpectEven(Counts(iteration), 12 * iteration);
}

TEST_P(RankRecordsTest, AreEachOncePerEpochWhereTheBatchGrowsWithTheRanks) {
  WriteKind(GetParam(), 2);
  int from = 0, records = 0;
  std::vector<int> first;
  for (const Stage& stage : kStages) {
    TrainOn(stage.ranks, from, stage.to);
    for (int iteration = from + 1; iteration <= stage.to; ++iteration) {
      records += 2 * stage.ranks;
      if (GetParam() != "images skipped") ExpectEven(Counts(iteration), records);
      const std::vector<int> counts = Counts(iteration);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), records);
    }
    from = stage.to;
  }
}

std::string NameOfRankData(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Sources, RankRecordsTest,
                         testing::Values("LMDB", "LEVELDB", "images", "images shuffled",
                                         "images skipped", "rows", "rows shuffled"),
                         NameOfRankData);

TEST_F(RankDataTest, AllRanksReadALevelDb) {
  WriteKind("LEVELDB", 12);
  // Rank 0 reads it for tests too.
  job_.net = Edited(job_.net, "layer {",
                    "layer { name: \"more\" type: \"Data\" top: \"x\" "
                    "data_param { source: \"LEVELDB\" backend: LEVELDB batch_size: 6 } }\n"
                    "layer { name: \"end\" type: \"Silence\" bottom: \"x\" }\nlayer {");
  job_.solver += " test_iter: 3 test_interval: 2";
  job_.Write();
  TrainOn(3, 0, 5, {"--global_batch"});
  ExpectEven(Counts(5), 60);
}

// Exit code 75 would let a batch system restart the job forever.
TEST_F(RankDataTest, ALevelDbThatIsWrittenIsRefusedOnceWith74) {
  WriteKind("LEVELDB", 12);
  leveldb::DB* raw = nullptr;
  ASSERT_TRUE(leveldb::DB::Open({}, job_.folder() / "LEVELDB", &raw).ok());
  const std::unique_ptr<leveldb::DB> held(raw);
  const Outcome outcome = Train({"--ranks=3", "--global_batch"});
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr(Join("process ", getpid())),
                                                  HasSubstr("has the database open"))));
}

TEST_F(RankDataTest, ADamagedLevelDbIsSaidOnce) {
  WriteKind("LEVELDB", 12);
  WriteText(job_.folder() / "LEVELDB/CURRENT", "MANIFEST-000099\n");
  const Outcome outcome = Train({"--ranks=3", "--global_batch"});
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("damaged or incomplete")));
}

// Runs that do not end by themselves.
class LongRankDataTest : public RunsOfRanks<RankDataTest> {
 protected:
  LongRankDataTest() {
    WriteKind("LEVELDB", 12);
    job_.solver = Edited(job_.solver, "max_iter: 1 ", "max_iter: 100000000 ");
    job_.solver = Edited(job_.solver, "snapshot: 1 ", "snapshot: 0 ");
    job_.solver = Edited(job_.solver, "display: 0", "display: 100");
    job_.Write();
  }
};

TEST_F(LongRankDataTest, ASignalStopsReadersOfALevelDbWithASnapshot) {
  const auto program = Start({"--ranks=2", "--global_batch"});
  program->Signal(SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_EQ(job_.Files("snap_iter").size(), 2u);
  ExpectAllGone();
}

}  // namespace
}  // namespace trainer
