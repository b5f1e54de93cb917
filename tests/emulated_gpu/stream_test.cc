#include <chrono>
#include <set>
#include <thread>

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StreamTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    other_ = NewStream();
  }
  void TearDown() override {
    Cuda().StreamDestroy(other_);
    GpuTest::TearDown();
  }
  static void Set(cuda::Stream stream, const OnDevice<int>& to, int value) {
    Start(stream, FillKernel<int>, 1, 1, to.data(), 1, value);
  }
  static void Add(cuda::Stream stream, const OnDevice<int>& from, const OnDevice<int>& to,
                  int add) {
    Start(stream, AddKernel, 1, 1, from.data(), to.data(), 1, add);
  }

  cuda::Stream other_ = nullptr;
};

TEST_F(StreamTest, WorkRunsWhenSomethingWaits) {
  const OnDevice<int> number(1);
  Set(stream_, number, 5);
  EXPECT_THAT(number.Values(), ElementsAre(-1));
  EXPECT_EQ(Count().done, 0);
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
  EXPECT_THAT(number.Values(), ElementsAre(5));
  EXPECT_EQ(Count().done, 1);
  EXPECT_EQ(Count().synchronizations, 1);
}

TEST_F(StreamTest, AStreamKeepsItsOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SetSeed(seed);
    const OnDevice<int> number(1);
    Set(stream_, number, 5);
    for (int i = 0; i < 10; ++i) Add(stream_, number, number, i);
    Cuda().StreamSynchronize(stream_);
    EXPECT_THAT(number.Values(), ElementsAre(50));
  }
}

// One stream writes 5 and the other one reads it: `found` collects the results.
TEST_F(StreamTest, AMissingWaitGivesAWrongNumberForSomeSeed) {
  for (const bool wait : {true, false}) {
    std::set<int> found;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SetSeed(seed);
      const OnDevice<int> number(1), result(1);
      const cuda::Event event = NewEvent();
      Set(stream_, number, 5);
      EXPECT_EQ(Cuda().EventRecord(event, stream_), 0);
      EXPECT_EQ(wait ? Cuda().StreamWaitEvent(other_, event, 0) : 0, 0);
      Add(other_, number, result, 1);
      Cuda().StreamSynchronize(other_);
      found.insert(result.Values()[0]);
      Cuda().EventDestroy(event);
    }
    EXPECT_EQ(found, wait ? std::set<int>{6} : (std::set<int>{0, 6}));
  }
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(StreamTest, AMissingWaitBeforeMemoryIsWrittenAgainShowsToo) {
  std::set<int> found;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SetSeed(seed);
    const OnDevice<int> number(1), result(1);
    Set(stream_, number, 5);
    Cuda().StreamSynchronize(stream_);
    Add(stream_, number, result, 1);
    Set(other_, number, 7);  // without waiting for the reader
    Cuda().StreamSynchronize(stream_);
    found.insert(result.Values()[0]);
  }
  EXPECT_EQ(found, (std::set<int>{6, 8}));
}

TEST_F(StreamTest, AWaitIsForTheRecordBeforeIt) {
  const OnDevice<int> number(1);
  const cuda::Event event = NewEvent();
  EXPECT_EQ(Cuda().StreamWaitEvent(other_, event, 0), 0);  // never recorded: waits for nothing
  Set(stream_, number, 1);
  Cuda().EventRecord(event, stream_);
  Cuda().StreamWaitEvent(other_, event, 0);
  Cuda().StreamWaitEvent(stream_, event, 0);
  Set(other_, number, 2);
  Cuda().EventRecord(event, other_);
  Cuda().StreamWaitEvent(stream_, event, 0);
  Set(stream_, number, 3);
  Cuda().EventDestroy(event);  // queued work that uses it still runs
  Cuda().StreamSynchronize(stream_);
  EXPECT_THAT(number.Values(), ElementsAre(3));
}

TEST_F(StreamTest, EventsTellWhatIsDoneAndWhen) {
  const OnDevice<int> number(1);
  const cuda::Event start = NewEvent(0), end = NewEvent(0), untimed = NewEvent();
  float milliseconds = -1;
  EXPECT_EQ(Cuda().EventQuery(start), 0);
  Cuda().EventRecord(start, stream_);
  for (int i = 0; i < 5; ++i) Set(stream_, number, i);
  Cuda().EventRecord(end, stream_);
  EXPECT_EQ(Cuda().EventElapsedTime(&milliseconds, start, end), 600);
  EXPECT_EQ(Cuda().EventSynchronize(end), 0);
  EXPECT_EQ(Cuda().EventQuery(end), 0);
  EXPECT_EQ(Cuda().EventElapsedTime(&milliseconds, start, end), 0);
  EXPECT_GT(milliseconds, 0);
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(Cuda().EventElapsedTime(&milliseconds, untimed, end), 400);
  EXPECT_THAT(Problems(), SizeIs(1));
  for (const cuda::Event event : {start, end, untimed}) Cuda().EventDestroy(event);
}

TEST_F(StreamTest, AsksWithoutWaiting) {
  const OnDevice<int> number(1);
  const cuda::Event event = NewEvent();
  EXPECT_EQ(Cuda().StreamQuery(stream_), 0);
  for (int i = 0; i < 30; ++i) Set(stream_, number, i);
  Cuda().EventRecord(event, stream_);
  EXPECT_EQ(Cuda().StreamQuery(stream_), 600);
  EXPECT_EQ(Cuda().EventQuery(event), 600);
  EXPECT_EQ(Cuda().GetLastError(), 600);
  int asked = 0;
  while (Cuda().EventQuery(event) != 0) ++asked;
  EXPECT_GT(asked, 10);
  EXPECT_THAT(number.Values(), ElementsAre(29));
  EXPECT_EQ(Count().synchronizations, 0);
  Cuda().EventDestroy(event);
}

TEST_F(StreamTest, AStreamThatIsDestroyedFinishesItsWork) {
  const OnDevice<int> number(1);
  const cuda::Stream stream = NewStream();
  Set(stream, number, 4);
  EXPECT_EQ(Cuda().StreamDestroy(stream), 0);
  EXPECT_EQ(Cuda().StreamSynchronize(stream), 400);
  EXPECT_EQ(Cuda().StreamDestroy(stream), 400);
  EXPECT_THAT(Problems(), SizeIs(2));
  EXPECT_EQ(Cuda().DeviceSynchronize(), 0);
  EXPECT_THAT(number.Values(), ElementsAre(4));
}

TEST_F(StreamTest, RefusesStreamsAndEventsOfNobodyAndTheNullStream) {
  const OnDevice<int> number(1);
  const cuda::Event event = NewEvent();
  int nobody[100] = {};
  const auto stream = reinterpret_cast<cuda::Stream>(nobody);
  EXPECT_EQ(Cuda().MemsetAsync(number.data(), 0, 4, nullptr), 400);
  EXPECT_THAT(Problems()[0], HasSubstr("cudaMemsetAsync on the null stream"));
  EXPECT_ANY_THROW(Start(nullptr, FillKernel<int>, 1, 1, number.data(), 1, 1));
  EXPECT_EQ(Cuda().StreamSynchronize(nullptr), 400);
  EXPECT_EQ(Cuda().StreamSynchronize(stream), 400);
  EXPECT_EQ(Cuda().EventRecord(event, stream), 400);
  EXPECT_EQ(Cuda().EventRecord(reinterpret_cast<cuda::Event>(nobody), stream_), 400);
  EXPECT_EQ(Cuda().EventRecord(nullptr, stream_), 400);
  EXPECT_EQ(Cuda().EventDestroy(event), 0);
  EXPECT_EQ(Cuda().EventQuery(event), 400);
  cuda::Stream blocking = nullptr;
  EXPECT_EQ(Cuda().StreamCreateWithFlags(&blocking, 0), 1);
  EXPECT_THAT(Problems(), SizeIs(9));
}

TEST_F(StreamTest, SeveralThreadsUseOneDevice) {
  std::vector<std::jthread> threads;
  std::vector<int> sums(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &sums] {
      const cuda::Stream stream = NewStream();
      const OnDevice<int> number(1);
      const PageLocked<int> result(1);
      for (int round = 0; round < 50; ++round) {
        Set(stream, number, t);
        Add(stream, number, number, 10);
        Cuda().MemcpyAsync(result.data(), number.data(), 4, cuda::kDeviceToHost, stream);
        Cuda().StreamSynchronize(stream);
        sums[static_cast<size_t>(t)] += result[0];
      }
      Cuda().StreamDestroy(stream);
    });
  }
  threads.clear();
  EXPECT_THAT(sums, ElementsAre(500, 550, 600, 650));
  EXPECT_THAT(Problems(), IsEmpty());
}

}  // namespace
}  // namespace emulated_gpu
