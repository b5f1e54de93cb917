
#include "trainer/input/batch_queue.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "storage/test_data.h"
#include "support/scoped.h"
#include "trainer/input/source.h"

#if defined(__SANITIZE_THREAD__)
// The C library protects its time zone with a lock that ThreadSanitizer does not see, and each log
// line reads the time zone.
extern "C" const char* __tsan_default_suppressions() { return "race:tzset_internal\n"; }
#endif

namespace trainer {
namespace {

constexpr char kRestart[] = "Restarting data prefetching from start.";

Transform Plain(const std::string& fields = "", caffe::Phase phase = caffe::TRAIN) {
  const LayerSpec& layer =
      KeptLayer("name: \"d\" type: \"Data\" transform_param { " + fields + " }");
  return Transform(layer, phase, PhiloxKey{1, 2});
}

struct DatabaseOptions : BatchQueueOptions {
  std::string backend, path;
};

BatchQueue Open(const DatabaseOptions& options, const Transform& transform) {
  return BatchQueue(MakeDatabaseSource(OpenCursor(options.backend, options.path), transform),
                    options);
}

class PrefetcherTest : public testing::Test {
 protected:
  DatabaseOptions Options(int batch_size, int records = 0, const std::string& backend = "LMDB") {
    DatabaseOptions options;
    options.backend = backend;
    options.path = folder_ / ("db_" + backend);
    options.batch_size = batch_size;
    options.depth = 2;
    if (records > 0) WriteDb(backend, options.path, NumberedRecords(records));
    return options;
  }
  // Returns the labels of the next `batches` batches as one list.
  static std::vector<int> Labels(BatchQueue& source, int batches) {
    std::vector<int> labels;
    for (int i = 0; i < batches; ++i) {
      for (const float label : source.Next().output(1)) labels.push_back(static_cast<int>(label));
    }
    return labels;
  }
  static std::vector<int> Count(int from, int count, int modulo) {
    std::vector<int> numbers;
    for (int i = from; i < from + count; ++i) numbers.push_back(i % modulo);
    return numbers;
  }

  TempFolder folder_;
};

TEST_F(PrefetcherTest, GivesBatchesInOrderAndWraps) {
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    BatchQueue source = Open(Options(3, 7, backend), Plain());
    EXPECT_EQ(source.shape(), (Shape{3, 1, 1, 1}));
    EXPECT_EQ(Labels(source, 10), Count(0, 30, 7));
  }
}

TEST_F(PrefetcherTest, PutsEachRecordsPixelsBesideItsLabel) {
  BatchQueue source = Open(Options(4, 10), Plain("scale: 0.5"));
  for (int i = 0; i < 20; ++i) {
    const Batch& batch = source.Next();
    ASSERT_EQ(batch.output(0).size(), 4u);
    for (size_t k = 0; k < 4; ++k) EXPECT_EQ(batch.output(0)[k], 0.5f * batch.output(1)[k]);
  }
}

TEST_F(PrefetcherTest, TransformsAsOneThreadWould) {
  const DatabaseOptions options = Options(5);
  Records records;
  for (int i = 0; i < 8; ++i) {
    std::string pixels;
    for (int p = 0; p < 3 * 6 * 6; ++p) pixels.push_back(static_cast<char>(i * 31 + p));
    records.emplace_back(Key8(i), MakeDatum(3, 6, 6, pixels, i).SerializeAsString());
  }
  WriteDb("LMDB", options.path, records);
  const std::string fields = "crop_size: 4 mirror: true mean_value: 100 scale: 0.25";
  BatchQueue source = Open(options, Plain(fields));
  EXPECT_EQ(source.shape(), (Shape{5, 3, 4, 4}));
  const Transform transform = Plain(fields);
  DatumParser parser;
  std::vector<float> want(3 * 4 * 4);
  for (uint64_t number = 0; number < 40; ++number) {
    const Batch* batch = number % 5 == 0 ? &source.Next() : nullptr;
    static const Batch* current;
    if (batch != nullptr) current = batch;
    const auto& [key, value] = records[number % 8];
    transform.ToFloats(parser.Parse("", key, value), number, want.data());
    const auto* start = current->output(0).data() + (number % 5) * want.size();
    ASSERT_TRUE(std::equal(want.begin(), want.end(), start)) << number;
  }
}

TEST_F(PrefetcherTest, LogsEachRestartWithVerbosity1) {
  const DatabaseOptions options = Options(4, 4);
  const LogLines log;
  {
    BatchQueue source = Open(options, Plain());
    Labels(source, 3);
  }
  EXPECT_THAT(log.Get(), testing::Not(testing::Contains(kRestart)));
  {
    const ScopedValue verbosity(&FLAGS_v, 1);
    BatchQueue source = Open(options, Plain());
    Labels(source, 3);
  }
  const auto lines = log.Get();
  EXPECT_GE(std::count(lines.begin(), lines.end(), kRestart), 3);
}

// --- Positions ---

TEST_F(PrefetcherTest, GoesOnBitForBitFromEverySavedPosition) {
  const std::string fields = "mirror: true crop_size: 2";
  const DatabaseOptions options = Options(3);
  Records records;
  for (int i = 0; i < 7; ++i) {
    records.emplace_back(Key8(i), MakeDatum(1, 3, 3, "abcdefghi", i).SerializeAsString());
  }
  WriteDb("LMDB", options.path, records);
  std::vector<std::vector<float>> data, labels;
  std::vector<std::string> positions;
  {
    BatchQueue source = Open(options, Plain(fields));
    positions.push_back(source.position().Encode());
    for (int i = 0; i < 12; ++i) {
      const Batch& batch = source.Next();
      data.push_back(Numbers(batch.output(0)));
      labels.push_back(Numbers(batch.output(1)));
      positions.push_back(source.position().Encode());
    }
  }
  for (size_t from = 0; from < 12; ++from) {
    BatchQueue source = Open(options, Plain(fields));
    source.Restore(Position::Decode(positions[from]));
    EXPECT_EQ(source.position().Encode(), positions[from]);
    for (size_t i = from; i < 12; ++i) {
      const Batch& batch = source.Next();
      ASSERT_EQ(Numbers(batch.output(0)), data[i]) << from << " " << i;
      ASSERT_EQ(Numbers(batch.output(1)), labels[i]);
      ASSERT_EQ(source.position().Encode(), positions[i + 1]);
    }
  }
}

TEST_F(PrefetcherTest, CountsRecordsAndEpochs) {
  BatchQueue source = Open(Options(5, 4), Plain());
  source.Next();
  EXPECT_EQ(source.position(), (Position{5, 1, Key8(1)}));
  source.Next();
  EXPECT_EQ(source.position(), (Position{10, 2, Key8(2)}));
}

TEST_F(PrefetcherTest, RefusesAPositionOfAnotherDatabase) {
  BatchQueue source = Open(Options(2, 4), Plain());
  EXPECT_THAT(Catch([&] {
                source.Restore({3, 0, "00000099"});
              }),
              Refuses(ErrorCode::kBadSnapshot,
                      "stopped before record '00000099', which is not in this data set"));
  EXPECT_EQ(Labels(source, 1), Count(0, 2, 4));
  EXPECT_THAT(Catch([&] {
                source.Restore({0, 0, ""});
              }),
              Refuses(ErrorCode::kInternal, "cannot be moved"));
}

TEST(PositionTest, SurvivesKeysWithAnyBytes) {
  for (const std::string& key : {std::string(), std::string("a b"), std::string("\0\n\xff 9", 5)}) {
    const Position position{123456789012345, 7, key};
    EXPECT_EQ(Position::Decode(position.Encode()), position);
  }
}

TEST(PositionTest, RefusesOtherText) {
  for (const char* text : {"", "1", "1 2", "1 2 3", "2 1 1 key", "1 x 3 key", "1 -1 3 k",
                           "1 99999999999999999999 3 k"}) {
    EXPECT_THAT(Catch([&] { Position::Decode(text); }),
                Refuses(ErrorCode::kBadSnapshot,
                        "is not in the format of this program; start "
                        "from the weights with --weights"))
        << text;
  }
}

// --- Names of records ---

TEST_F(PrefetcherTest, NamesTheRecordOfEachItem) {
  for (const char* backend : {"LMDB", "LEVELDB"}) {
    for (const int ranks : {1, 3}) {
      for (const int batches : {1, 4}) {  // 4: past the end of the database
        for (const int item : {0, 1}) {
          DatabaseOptions options = Options(2, 0, backend);
          if (!std::filesystem::exists(options.path)) {
            WriteDb(backend, options.path, NumberedRecords(5));
          }
          options.rank = {ranks - 1, ranks};
          BatchQueue source = Open(options, Plain());
          const int label = Labels(source, batches)[static_cast<size_t>(2 * batches - 2 + item)];
          EXPECT_EQ(source.RecordName(item), "record '" + Key8(label) + "' of " + options.path);
        }
      }
    }
  }
}

TEST_F(PrefetcherTest, NamesItemsAfterAResume) {
  const DatabaseOptions options = Options(2, 5);
  BatchQueue whole = Open(options, Plain());
  Labels(whole, 2);
  BatchQueue resumed = Open(options, Plain());
  resumed.Restore(whole.position());
  EXPECT_EQ(Labels(resumed, 1)[1], 0);
  EXPECT_EQ(resumed.RecordName(1), "record '00000000' of " + options.path);
}

// --- Errors of the thread ---

class PrefetcherRefusalTest : public PrefetcherTest {
 protected:
  // Reads batches of two until something is thrown, at most 10.
  Thrown Run(const Records& records, bool labels = true, const std::string& fields = "") {
    DatabaseOptions options = Options(2);
    options.labels = labels;
    WriteDb("LMDB", options.path, records);
    good_ = 0;
    return Catch([&] {
      BatchQueue source = Open(options, Plain(fields));
      for (; good_ < 10; ++good_) source.Next();
    });
  }
  int good_ = 0;  // batches before the error
};

TEST_F(PrefetcherRefusalTest, AnotherShapeNamesBothRecordsAfterTheGoodBatches) {
  Records records = NumberedRecords(6);
  records[5].second = MakeDatum(1, 2, 1, "ab", 0).SerializeAsString();
  EXPECT_THAT(Run(records), Refuses(ErrorCode::kData,
                                    "record '00000005' gives a 1x2x1 image, but record '00000000' "
                                    "gave 1x1x1"));
  EXPECT_EQ(good_, 2);
}

TEST_F(PrefetcherRefusalTest, OtherSizesAreFineWhenTheCropIsTheSame) {
  Records records = NumberedRecords(3);
  records[1].second = MakeDatum(1, 2, 2, "abcd", 0).SerializeAsString();
  EXPECT_EQ(Run(records, true, "crop_size: 1").code, 0);
  EXPECT_EQ(good_, 10);
}

TEST_F(PrefetcherRefusalTest, ARecordThatDoesNotParse) {
  Records records = NumberedRecords(4);
  records[3].second = "\xff garbage";
  EXPECT_THAT(Run(records), Refuses(ErrorCode::kData, "record '00000003' is not a Datum"));
  EXPECT_EQ(good_, 1);
}

TEST_F(PrefetcherRefusalTest, AMissingLabelOnlyWhereLabelsAreWanted) {
  Records records = NumberedRecords(2);
  caffe::Datum datum = MakeDatum(1, 1, 1, "x", 0);
  datum.clear_label();
  records[1].second = datum.SerializeAsString();
  EXPECT_THAT(Run(records), Refuses(ErrorCode::kData, "record '00000001' has no label"));
  std::filesystem::remove_all(Options(2).path);
  EXPECT_EQ(Run(records, false).code, 0);
}

TEST_F(PrefetcherRefusalTest, ABadFirstRecordWhenItIsMade) {
  EXPECT_THAT(Run({{"a", "\xff"}}), Refuses(ErrorCode::kData, "record 'a' is not a Datum"));
}

TEST_F(PrefetcherTest, ThrowsTheSameAgainWhenAskedAgain) {
  const DatabaseOptions options = Options(1);
  Records records = NumberedRecords(2);
  records[1].second = "\xff";
  WriteDb("LMDB", options.path, records);
  BatchQueue source = Open(options, Plain());
  source.Next();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Catch([&] { source.Next(); }), Refuses(ErrorCode::kData, "record '00000001'"));
  }
}

// --- The queue ---

TEST_F(PrefetcherTest, EndsWhileItsThreadWaitsForRoom) {
  for (int i = 0; i < 50; ++i) {
    BatchQueue source = Open(Options(2, i == 0 ? 4 : 0), Plain());
    if (i % 2 == 0) source.Next();  // odd rounds end before the thread starts
  }
}

TEST_F(PrefetcherTest, ReusesItsBuffers) {
  BatchQueue source = Open(Options(2, 4), Plain());
  std::vector<const float*> seen;
  for (int i = 0; i < 50; ++i) {
    const float* data = source.Next().output(0).data();
    if (std::find(seen.begin(), seen.end(), data) == seen.end()) seen.push_back(data);
  }
  EXPECT_LE(seen.size(), 3u);  // two are ready ahead, one is in use
}

TEST_F(PrefetcherTest, DoesNotLogTheFirstWait) {
  const LogLines log;
  BatchQueue source = Open(Options(2, 1000), Plain());
  source.Next();
  EXPECT_EQ(source.counters().waits, 0u);
  EXPECT_EQ(source.counters().wait_seconds, 0);
  EXPECT_THAT(log.Get(), testing::Not(testing::Contains("Waiting for data")));
}

TEST_F(PrefetcherTest, CountsWaitsAndLogsTheFirst) {
  // The records are so large that decoding a batch takes longer than requesting the next one.
  const DatabaseOptions options = Options(1);
  WriteDb("LMDB", options.path,
          {{"a", MakeDatum(3, 300, 300, std::string(270000, 'x'), 0).SerializeAsString()}});
  const LogLines log;
  BatchQueue source = Open(options, Plain("mirror: true"));
  while (source.counters().waits < 10) source.Next();
  const auto lines = log.Get();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "Waiting for data"), 1);
  EXPECT_GT(source.counters().wait_seconds, 0);
}

TEST(LogsWaitTest, TakesTheFirstOfEachThousand) {
  EXPECT_TRUE(LogsWait(1));
  EXPECT_FALSE(LogsWait(2));
  EXPECT_FALSE(LogsWait(1000));
  EXPECT_TRUE(LogsWait(1001));
}

}  // namespace
}  // namespace trainer
