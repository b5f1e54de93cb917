// Tests that several decode threads give the same batches, positions and errors as one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "input/every_source.h"
#include "trainer/input/image_decoder.h"

namespace trainer {
namespace {

constexpr char kTransform[] = "crop_size: 3 mirror: true mean_value: 100 scale: 0.25";
constexpr int kBatches = 12;

// The values of some batches, and the positions after them.
struct Read {
  std::vector<std::vector<float>> outputs;
  std::vector<std::string> positions;
  bool operator==(const Read&) const = default;
};

Read ReadAll(BatchQueue& source, int batches = kBatches) {
  Read read;
  for (int i = 0; i < batches; ++i) {
    const Batch& batch = source.Next();
    for (int k = 0; k < batch.num_outputs(); ++k) read.outputs.push_back(Numbers(batch.output(k)));
    read.positions.push_back(source.position().Encode());
  }
  return read;
}

class DecodeThreadsTest : public testing::Test {
 protected:
  EverySource source_{40};
};

TEST_F(DecodeThreadsTest, MakeTheBytesThatOneThreadMakes) {
  for (const std::string& kind : EverySource::Kinds()) {
    for (const Rank& rank : {Rank{0, 1}, Rank{1, 3}}) {
      const Read alone = ReadAll(*source_.Make(kind, 19, rank, 1, kTransform));
      for (const int threads : {2, 4, 8}) {
        const auto together = source_.Make(kind, 19, rank, threads, kTransform);
        EXPECT_EQ(ReadAll(*together), alone) << kind << ", " << threads << " threads";
      }
    }
  }
}

TEST_F(DecodeThreadsTest, MakeTheWindowsThatOneThreadMakes) {
  const Read alone = ReadAll(*source_.MakeWindows(10));
  for (const int threads : {2, 4, 8}) {
    EXPECT_EQ(ReadAll(*source_.MakeWindows(10, {}, threads)), alone) << threads;
  }
}

TEST_F(DecodeThreadsTest, AreMoreThanABatchHasRecords) {
  for (const std::string& kind : EverySource::Kinds()) {
    const Read alone = ReadAll(*source_.Make(kind, 1));
    EXPECT_EQ(ReadAll(*source_.Make(kind, 1, {}, 8)), alone) << kind;
  }
}

TEST_F(DecodeThreadsTest, GoOnFromAPositionOfAnotherNumberOfThem) {
  for (const std::string& kind : EverySource::Kinds()) {
    const auto alone = source_.Make(kind, 7, {}, 1, kTransform);
    ReadAll(*alone, 8);
    const auto together = source_.Make(kind, 7, {}, 4, kTransform);
    together->Restore(alone->position());
    EXPECT_EQ(ReadAll(*together), ReadAll(*alone)) << kind;
  }
}

TEST_F(DecodeThreadsTest, LeaveTheNameOfAnItem) {
  for (const std::string& kind : EverySource::Kinds()) {
    const auto alone = source_.Make(kind, 9), together = source_.Make(kind, 9, {}, 4);
    for (int i = 0; i < 6; ++i) alone->Next(), together->Next();
    EXPECT_EQ(together->RecordName(5), alone->RecordName(5));
    EXPECT_THAT(Catch([&] { together->Next(); }), Refuses(ErrorCode::kInternal, "was stopped"));
  }
}

TEST_F(DecodeThreadsTest, EndAtAnyTime) {
  for (int i = 0; i < 60; ++i) {
    const auto source = source_.Make("images", 16, {}, 4);
    for (int k = 0; k < i % 3; ++k) source->Next();
    std::this_thread::sleep_for(std::chrono::microseconds(i * 20));
  }
}

TEST_F(DecodeThreadsTest, ReuseTheBuffers) {
  const auto source = source_.Make("LMDB", 8, {}, 4);
  std::set<const float*> seen;
  for (int i = 0; i < 100; ++i) seen.insert(source->Next().output(0).data());
  EXPECT_LE(seen.size(), 5u);  // four are ready ahead, one is in use
}

// --- Errors ---

// A source of numbers. Some cannot be decoded, and one cannot be read.
class BrokenSampler final : public RecordSampler {
 public:
  explicit BrokenSampler(uint64_t unreadable) : unreadable_(unreadable) {}

  const std::string& path() const override { return path_; }
  void Get(Record* record) override {
    if (at_ == unreadable_) throw Error(ErrorCode::kIo, {path_}, Join("cannot fetch ", at_));
    key_ = Key();
    record->key = key_;
    record->index = at_;
  }
  uint64_t Skip(uint64_t count) override {
    at_ += count;
    return 0;
  }
  std::string Key() const override { return Join("number ", at_); }
  void Seek(const Position& position) override { at_ = position.record; }

 private:
  std::string path_ = "broken", key_;
  uint64_t unreadable_, at_ = 0;
};

class BrokenLoader final : public ImageLoader {
 public:
  explicit BrokenLoader(std::set<uint64_t> bad) : bad_(std::move(bad)) {}
  const DatumView& Load(const Record& record, const CropChooser*) override {
    if (record.index % 3 == 1) std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (bad_.contains(record.index)) {
      throw Error(ErrorCode::kData, {"broken"}, Join("cannot decode ", record.key));
    }
    pixel_ = static_cast<float>(record.index);
    view_.channels = view_.height = view_.width = 1;
    view_.floats = {&pixel_, 1};
    return view_;
  }

 private:
  std::set<uint64_t> bad_;
  float pixel_ = 0;
  DatumView view_;
};

// Returns the number of batches before the error, which every later call throws again.
std::pair<int, Thrown> ReadBroken(std::set<uint64_t> bad, uint64_t unreadable, int threads) {
  BatchQueueOptions options;
  options.batch_size = 10;
  options.labels = false;
  options.decode_threads = threads;
  RecordSource broken;
  broken.sampler = std::make_unique<BrokenSampler>(unreadable);
  broken.decoders = std::make_unique<ImageDecoderFactory>(
      Transform(KeptLayer("name: 'd' type: 'Data'"), caffe::TRAIN, {}),
      [=](BitDepth) { return std::make_unique<BrokenLoader>(bad); });
  BatchQueue source(std::move(broken), options);
  int good = 0;
  const Thrown first = Catch([&] {
    for (;; ++good) {
      const Batch& batch = source.Next();
      for (size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(batch.output(0)[i], static_cast<float>(10 * good) + static_cast<float>(i));
      }
    }
  });
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(Catch([&] { source.Next(); }).text, first.text);
  }
  return {good, first};
}

TEST(DecodeErrorsTest, TheFirstBadRecordIsReportedAfterTheBatchesBeforeIt) {
  for (const int threads : {1, 2, 4, 8}) {
    for (int round = 0; round < 10; ++round) {
      const auto [good, error] = ReadBroken({37, 38, 41, 39}, 1000, threads);
      EXPECT_EQ(good, 3);
      EXPECT_THAT(error, Refuses(ErrorCode::kData, "broken: cannot decode number 37"));
    }
  }
}

TEST(DecodeErrorsTest, ARecordThatCannotBeFetchedComesAfterABadOneBeforeIt) {
  for (const int threads : {1, 2, 4, 8}) {
    const auto [good, error] = ReadBroken({34}, 36, threads);
    EXPECT_EQ(good, 3);
    EXPECT_THAT(error, Refuses(ErrorCode::kData, "cannot decode number 34"));
  }
}

TEST(DecodeErrorsTest, ARecordThatCannotBeFetchedEndsTheReading) {
  for (const int threads : {1, 2, 4, 8}) {
    for (const uint64_t unreadable : {20, 25, 29}) {
      const auto [good, error] = ReadBroken({31}, unreadable, threads);
      EXPECT_EQ(good, 2);
      EXPECT_THAT(error, Refuses(ErrorCode::kIo, Join("cannot fetch ", unreadable).c_str()));
    }
  }
}

}  // namespace
}  // namespace trainer
