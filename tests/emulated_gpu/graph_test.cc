#include <set>
#include <thread>

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class GraphTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    other_ = NewStream();
    event_ = NewEvent();
    joined_ = NewEvent();
  }
  void TearDown() override {
    Cuda().StreamDestroy(other_);
    Cuda().EventDestroy(event_);
    Cuda().EventDestroy(joined_);
    GpuTest::TearDown();
  }
  void Begin() { ASSERT_EQ(Cuda().StreamBeginCapture(stream_, cuda::kCaptureThreadLocal), 0); }
  // Returns the graph of the stream's capture, or null with `error_` set if the capture fails.
  cuda::GraphExec End() {
    cuda::Graph graph = nullptr;
    cuda::GraphExec exec = nullptr;
    error_ = Cuda().StreamEndCapture(stream_, &graph);
    if (error_ != 0) return nullptr;
    EXPECT_EQ(Cuda().GraphInstantiate(&exec, graph), 0);
    EXPECT_EQ(Cuda().GraphDestroy(graph), 0);
    return exec;
  }
  // Ends the capture and expects it to fail with `error`.
  void ExpectInvalid(int error) {
    EXPECT_EQ(End(), nullptr);
    EXPECT_EQ(error_, error);
    EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
  }
  static void Add(cuda::Stream stream, const OnDevice<int>& from, const OnDevice<int>& to,
                  int add) {
    Start(stream, AddKernel, 1, 1, from.data(), to.data(), 1, add);
  }

  cuda::Stream other_ = nullptr;
  cuda::Event event_ = nullptr, joined_ = nullptr;
  int error_ = 0;
};

TEST_F(GraphTest, WhatWasCapturedRunsEachTimeTheGraphIsLaunched) {
  const OnDevice<int> number(1);
  const PageLocked<int> host(1);
  Begin();
  Cuda().MemcpyAsync(number.data(), host.data(), 4, cuda::kHostToDevice, stream_);
  Add(stream_, number, number, 1);
  Cuda().MemcpyAsync(host.data(), number.data(), 4, cuda::kDeviceToHost, stream_);
  const cuda::GraphExec graph = End();
  host[0] = 10;
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
  EXPECT_EQ(host[0], 10);  // captured, not run
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Cuda().GraphLaunch(graph, stream_), 0);
  EXPECT_EQ(host[0], 10);
  Cuda().StreamSynchronize(stream_);
  EXPECT_EQ(host[0], 15);
  EXPECT_EQ(Cuda().GraphExecDestroy(graph), 0);
  EXPECT_EQ(Cuda().GraphExecDestroy(graph), 1);
  EXPECT_EQ(Count().graph_launches, 5);
  EXPECT_THAT(Problems(), SizeIs(1));
}

TEST_F(GraphTest, StreamsTakePartByEvents) {
  std::set<int> found;
  for (const bool wait : {true, false}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SetSeed(seed);
      const OnDevice<int> a(1), b(1), c(1);
      Cuda().MemsetAsync(a.data(), 0, 4, stream_);
      Cuda().MemsetAsync(b.data(), 0, 4, stream_);
      Begin();
      Cuda().EventRecord(event_, stream_);
      EXPECT_EQ(Cuda().StreamWaitEvent(other_, event_, 0), 0);
      Add(other_, a, b, 5);
      Cuda().EventRecord(joined_, other_);
      if (wait) Cuda().StreamWaitEvent(stream_, joined_, 0);
      Add(stream_, b, c, 1);
      if (!wait) Cuda().StreamWaitEvent(stream_, joined_, 0);
      const cuda::GraphExec graph = End();
      ASSERT_NE(graph, nullptr);
      EXPECT_EQ(Cuda().GraphLaunch(graph, stream_), 0);
      Cuda().GraphExecDestroy(graph);  // the launched graph still runs
      Cuda().StreamSynchronize(stream_);
      EXPECT_TRUE(!wait || c.Values()[0] == 6);
      found.insert(c.Values()[0]);
    }
  }
  EXPECT_EQ(found, (std::set<int>{1, 6}));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(GraphTest, AStreamThatDoesNotJoinIsRefused) {
  const OnDevice<int> number(1);
  Begin();
  Cuda().EventRecord(event_, stream_);
  Cuda().StreamWaitEvent(other_, event_, 0);
  Cuda().MemsetAsync(number.data(), 0, 4, other_);
  ExpectInvalid(904);
  EXPECT_EQ(Cuda().StreamSynchronize(other_), 0);  // not captured any more
}

TEST_F(GraphTest, RefusesWhatWaitsOrAllocatesDuringACapture) {
  const OnDevice<int> number(1);
  void* memory = nullptr;
  int value = 0;
  const std::pair<const char*, std::function<int()>> calls[] = {
      {"cudaMalloc", [&] { return Cuda().Malloc(&memory, 4); }},
      {"cudaFree", [&] { return Cuda().Free(number.data()); }},
      {"cudaHostAlloc", [&] { return Cuda().HostAlloc(&memory, 4, 0); }},
      {"cudaStreamSynchronize", [&] { return Cuda().StreamSynchronize(stream_); }},
      {"cudaStreamQuery", [&] { return Cuda().StreamQuery(stream_); }},
      {"cudaDeviceSynchronize", [&] { return Cuda().DeviceSynchronize(); }},
      {"cudaEventQuery", [&] { return Cuda().EventQuery(event_); }},
      {"not page-locked",
       [&] { return Cuda().MemcpyAsync(number.data(), &value, 4, cuda::kHostToDevice, stream_); }}};
  for (const auto& [name, call] : calls) {
    ClearProblems();
    Begin();
    EXPECT_EQ(call(), 900) << name;
    ASSERT_THAT(Problems(), SizeIs(1));
    EXPECT_THAT(Problems()[0], HasSubstr(name));
    EXPECT_EQ(Cuda().MemsetAsync(number.data(), 0, 4, stream_), 901);
    ExpectInvalid(901);
  }
  EXPECT_EQ(memory, nullptr);
}

TEST_F(GraphTest, RefusesTheNullStreamDuringACapture) {
  const OnDevice<int> number(1);
  Begin();
  EXPECT_EQ(Cuda().MemsetAsync(number.data(), 0, 4, nullptr), 400);
  Cuda().GraphExecDestroy(End());
}

TEST_F(GraphTest, EventsOfACaptureTellNothing) {
  Begin();
  Cuda().EventRecord(event_, stream_);
  EXPECT_EQ(Cuda().EventSynchronize(event_), 907);
  ExpectInvalid(901);
  EXPECT_EQ(Cuda().StreamWaitEvent(other_, event_, 0), 907);
}

TEST_F(GraphTest, ACapturedStreamWaitsForCapturedWorkAlone) {
  Cuda().EventRecord(event_, other_);
  Begin();
  EXPECT_EQ(Cuda().StreamWaitEvent(stream_, event_, 0), 905);
  ExpectInvalid(901);
}

TEST_F(GraphTest, OneCaptureAtATimeOnAStream) {
  cuda::Graph graph = nullptr;
  EXPECT_EQ(Cuda().StreamEndCapture(stream_, &graph), 401);
  Begin();
  EXPECT_EQ(Cuda().StreamBeginCapture(stream_, cuda::kCaptureThreadLocal), 401);
  std::jthread([&] { EXPECT_EQ(Cuda().StreamEndCapture(stream_, &graph), 908); }).join();
  const cuda::GraphExec exec = End();
  EXPECT_NE(exec, nullptr);
  Cuda().GraphExecDestroy(exec);
}

// Another stream that waits for the event sees the number before or after the second sum.
TEST_F(GraphTest, AnExternalEventIsReachedWithItsNodeInEachLaunch) {
  std::set<int> found;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SetSeed(seed);
    const OnDevice<int> number(1), seen(1);
    Cuda().MemsetAsync(number.data(), 0, 4, stream_);
    Begin();
    Add(stream_, number, number, 5);
    EXPECT_EQ(Cuda().EventRecordWithFlags(event_, stream_, cuda::kEventRecordExternal), 0);
    Add(stream_, number, number, 100);
    const cuda::GraphExec graph = End();
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(Cuda().EventQuery(event_), 0) << "nothing was recorded yet";
    for (int launch = 1; launch <= 2; ++launch) {
      EXPECT_EQ(Cuda().GraphLaunch(graph, stream_), 0);
      EXPECT_EQ(Cuda().StreamWaitEvent(other_, event_, 0), 0);
      Add(other_, number, seen, 0);
      Cuda().StreamSynchronize(other_);
      const int before = 105 * (launch - 1) + 5, value = seen.Values()[0];
      EXPECT_TRUE(value == before || value == before + 100) << value;
      found.insert(value - 105 * (launch - 1));
      EXPECT_EQ(Cuda().EventSynchronize(event_), 0);
      Cuda().StreamSynchronize(stream_);
    }
    Cuda().GraphExecDestroy(graph);
  }
  EXPECT_EQ(found, (std::set<int>{5, 105}));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(GraphTest, ALaunchWaitsForAnExternalEventAsItIsThen) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SetSeed(seed);
    const OnDevice<int> number(1), seen(1);
    Begin();
    EXPECT_EQ(Cuda().StreamWaitEvent(stream_, event_, cuda::kEventWaitExternal), 0);
    Add(stream_, number, seen, 0);
    const cuda::GraphExec graph = End();
    ASSERT_NE(graph, nullptr);
    for (const int value : {3, 8}) {
      Start(other_, FillKernel<int>, 1, 1, number.data(), 1, value);
      Cuda().EventRecord(event_, other_);
      EXPECT_EQ(Cuda().GraphLaunch(graph, stream_), 0);
      Cuda().StreamSynchronize(stream_);
      EXPECT_THAT(seen.Values(), ElementsAre(value));
    }
    Cuda().GraphExecDestroy(graph);
  }
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(GraphTest, OnlyACaptureKnowsExternalEvents) {
  EXPECT_EQ(Cuda().EventRecordWithFlags(event_, stream_, cuda::kEventRecordExternal), 1);
  EXPECT_EQ(Cuda().StreamWaitEvent(stream_, event_, cuda::kEventWaitExternal), 1);
  EXPECT_EQ(Cuda().EventRecordWithFlags(event_, stream_, 2), 1);
  EXPECT_EQ(Cuda().StreamWaitEvent(stream_, event_, 2), 1);
  EXPECT_THAT(Problems(), SizeIs(4));
  EXPECT_THAT(Problems()[0], HasSubstr("a stream that is not captured"));
}

// An event that is recorded without the flag makes another stream take part.
TEST_F(GraphTest, AnExternalEventJoinsNoStreams) {
  const OnDevice<int> number(1);
  Begin();
  Cuda().EventRecordWithFlags(event_, stream_, cuda::kEventRecordExternal);
  const cuda::GraphExec graph = End();
  EXPECT_EQ(Cuda().GraphLaunch(graph, stream_), 0);
  Begin();
  EXPECT_EQ(Cuda().StreamWaitEvent(other_, event_, 0), 0);
  EXPECT_EQ(Cuda().StreamSynchronize(other_), 900) << "this thread captures";
  ExpectInvalid(901);
  Begin();
  EXPECT_EQ(Cuda().StreamWaitEvent(stream_, event_, 0), 905);
  ExpectInvalid(901);
  EXPECT_EQ(Cuda().StreamSynchronize(other_), 0);
  Cuda().GraphExecDestroy(graph);
}

TEST_F(GraphTest, RefusesALaunchWhoseEventIsGone) {
  Begin();
  Cuda().EventRecordWithFlags(event_, stream_, cuda::kEventRecordExternal);
  const cuda::GraphExec graph = End();
  Cuda().EventDestroy(event_);
  EXPECT_EQ(Cuda().GraphLaunch(graph, stream_), 1);
  event_ = NewEvent();
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("an event of the graph is there no more")));
  Cuda().GraphExecDestroy(graph);
}

TEST_F(GraphTest, AResetEndsCaptures) {
  Begin();
  Reset();
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
}

TEST_F(GraphTest, OtherThreadsGoOnDuringACapture) {
  const OnDevice<int> number(1);
  Begin();
  std::jthread([&] {
    const OnDevice<int> another(1);
    EXPECT_EQ(Cuda().MemsetAsync(number.data(), 0, 4, other_), 0);
    EXPECT_EQ(Cuda().StreamSynchronize(other_), 0);
  }).join();
  const cuda::GraphExec exec = End();
  EXPECT_NE(exec, nullptr);
  Cuda().GraphExecDestroy(exec);
  EXPECT_THAT(number.Values(), ElementsAre(0));
  EXPECT_THAT(Problems(), IsEmpty());
}

}  // namespace
}  // namespace emulated_gpu
