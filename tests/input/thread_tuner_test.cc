// Tests the number of decode threads and the measurement of work, with the test's own clocks.

#include "thread_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "input_clock.h"
#include "storage/test_data.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/image_decoder.h"

namespace trainer {
namespace {

// Returns the number of threads after 2000 batches. A batch takes one thread 1 s and the consumer
// `consumer` seconds; decoding scales up to `scales_to` threads.
int ThreadsAfter(int most, int scales_to, bool decoding_is_slower, double consumer = 0.25,
                 int first = 1) {
  ThreadTuner tuner(first, most);
  for (int i = 0; i < 2000; ++i) {
    const double made = 1.0 / std::min(tuner.threads(), scales_to);
    const double period = std::max(made, consumer);
    tuner.Note(period, period - consumer, decoding_is_slower, 0);
  }
  return tuner.threads();
}

TEST(DecodeTunerTest, AddsThreadsAsLongAsTheyHelp) {
  EXPECT_EQ(ThreadsAfter(1, 8, true), 1);
  EXPECT_EQ(ThreadsAfter(2, 8, true), 2);
  EXPECT_EQ(ThreadsAfter(8, 8, true), 4);  // the consumer needs no more
  EXPECT_EQ(ThreadsAfter(8, 3, true), 3);  // a fourth thread did not help and was removed
  EXPECT_EQ(ThreadsAfter(8, 1, true), 1);
}

TEST(DecodeTunerTest, BeginsWithAsManyAsItIsTold) {
  EXPECT_EQ(ThreadTuner(2, 8).threads(), 2);
  EXPECT_EQ(ThreadsAfter(8, 8, true, 0.25, 2), 4);
  EXPECT_EQ(ThreadsAfter(2, 8, true, 0.25, 2), 2);
  EXPECT_EQ(ThreadsAfter(8, 8, false, 0.25, 2), 2);
}

TEST(DecodeTunerTest, AddsNoneWhereReadingIsTheBottleneckOrNobodyWaits) {
  EXPECT_EQ(ThreadsAfter(8, 8, false), 1);
  EXPECT_EQ(ThreadsAfter(8, 8, true, 1.0), 1);
}

// Returns the number of batches, each of `seconds` and mostly waiting, until a second thread is
// added.
int BatchesUntilASecondThread(double seconds) {
  ThreadTuner tuner(1, 2);
  int batches = 0;
  while (tuner.threads() == 1 && batches < 1000) {
    tuner.Note(seconds, 0.9 * seconds, true, 0);
    ++batches;
  }
  return batches;
}

TEST(DecodeTunerTest, SlowBatchesBringTheSecondThreadAfterAFew) {
  EXPECT_EQ(BatchesUntilASecondThread(0.2), 1 + 4);  // the first batch does not count
  EXPECT_EQ(BatchesUntilASecondThread(0.05), 1 + 6);
  EXPECT_EQ(BatchesUntilASecondThread(0.0001), 1 + 24);
}

TEST(DecodeTunerTest, BatchesThatFewerThreadsMadeDoNotCount) {
  for (const size_t ready : {0, 3}) {
    ThreadTuner tuner(1, 8);
    for (int i = 0; i < 5; ++i) tuner.Note(1, 0.9, true, ready);
    ASSERT_EQ(tuner.threads(), 2);
    // The batches that were ready and the one in progress do not count; a window has four batches.
    for (size_t i = 0; i < ready + 1 + 3; ++i) tuner.Note(0.5, 0.4, true, 0);
    EXPECT_EQ(tuner.threads(), 2);
    tuner.Note(0.5, 0.4, true, 0);
    EXPECT_EQ(tuner.threads(), 3);
  }
}

TEST(DecodeTunerTest, AFewSlowBatchesTakeNoThreadBack) {
  ThreadTuner tuner(1, 2);
  for (int i = 0; i < 5; ++i) tuner.Note(1, 0.9, true, 0);
  for (int i = 0; i < 11; ++i) tuner.Note(i < 8 ? 1.1 : 0.5, 0.4, true, 0);
  EXPECT_EQ(tuner.threads(), 2);
  for (int i = 0; i < 100; ++i) tuner.Note(0.5, 0.4, true, 0);
  EXPECT_EQ(tuner.threads(), 2);
}

TEST(DecodeTunerTest, APauseBetweenBatchesChangesNothing) {
  for (const double pause : {3.0, 1000.0}) {
    ThreadTuner tuner(1, 4);
    for (int i = 0; i < 500; ++i) {
      const double period = 1.0 / tuner.threads();
      tuner.Note(i % 20 == 0 ? pause : period, period - 0.05, true, 0);
    }
    EXPECT_EQ(tuner.threads(), 4);
  }
}

std::atomic<int64_t> fake_now{0};  // milliseconds
double FakeNow() { return static_cast<double>(fake_now) * 1e-3; }

// A sampler and a loader that take the given time, by the test's clock.
class SlowSampler final : public RecordSampler {
 public:
  explicit SlowSampler(int read_ms) : read_ms_(read_ms) {}

  const std::string& path() const override { return path_; }
  void Get(Record* record) override {
    fake_now += read_ms_;
    record->key = "k";
  }
  uint64_t Skip(uint64_t) override { return 0; }
  std::string Key() const override { return "k"; }
  void Seek(const Position&) override {}

 private:
  std::string path_ = "slow";
  int read_ms_;
};

class SlowLoader final : public ImageLoader {
 public:
  explicit SlowLoader(int decode_ms) : decode_ms_(decode_ms) {}
  const DatumView& Load(const Record&, const CropChooser*) override {
    fake_now += decode_ms_;
    view_.channels = view_.height = view_.width = 1;
    view_.floats = {&pixel_, 1};
    return view_;
  }

 private:
  int decode_ms_;
  float pixel_ = 0;
  DatumView view_;
};

class StageTest : public testing::Test {
 protected:
  StageTest() { input_clock = FakeNow; }
  ~StageTest() override { input_clock = SteadySeconds; }

  static WorkSeconds Stages(int read_ms, int decode_ms, int threads) {
    BatchQueueOptions options;
    options.batch_size = 8;
    options.labels = false;
    options.decode_threads = threads;
    RecordSource slow;
    slow.sampler = std::make_unique<SlowSampler>(read_ms);
    slow.decoders = std::make_unique<ImageDecoderFactory>(
        Transform(KeptLayer("name: 'd' type: 'Data'"), caffe::TRAIN, {}),
        [=](BitDepth) { return std::make_unique<SlowLoader>(decode_ms); });
    BatchQueue source(std::move(slow), options);
    for (int i = 0; i < 40; ++i) source.Next();
    return source.counters().work;
  }
};

TEST_F(StageTest, ReadingAndDecodingAreToldApart) {
  const WorkSeconds slow_disk = Stages(90, 10, 1);
  EXPECT_NEAR(slow_disk.read / (slow_disk.read + slow_disk.decode), 0.9, 1e-6);
  const WorkSeconds slow_codec = Stages(5, 95, 1);
  EXPECT_NEAR(slow_codec.decode / (slow_codec.read + slow_codec.decode), 0.95, 1e-6);
  EXPECT_NEAR(slow_codec.transform, 0, 1e-6);
}

TEST_F(StageTest, AlsoWhereSeveralThreadsDecode) {
  const WorkSeconds slow_disk = Stages(90, 0, 3);
  EXPECT_GT(slow_disk.read, 0);
}

}  // namespace
}  // namespace trainer
