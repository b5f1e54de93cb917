// Errors that a test injects.

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using ErrorTest = GpuTest;

TEST_F(ErrorTest, AnInjectedErrorIsThatOfOneCall) {
  void* memory[4] = {};
  InjectError(CallKind::kMalloc, 2, 2);
  EXPECT_EQ(Cuda().Malloc(&memory[0], 8), 0);
  EXPECT_EQ(Cuda().Malloc(&memory[1], 8), 0);
  EXPECT_EQ(Cuda().Malloc(&memory[2], 8), 2);
  EXPECT_EQ(Cuda().Malloc(&memory[3], 8), 0);
  EXPECT_EQ(Cuda().PeekAtLastError(), 2);
  EXPECT_EQ(Cuda().GetLastError(), 2);
  EXPECT_EQ(Cuda().GetLastError(), 0);
  EXPECT_EQ(memory[2], nullptr);
  for (void* const it : memory) Cuda().Free(it);
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ErrorTest, EachKindOfCallCanFail) {
  const OnDevice<int> number(1);
  void* memory = nullptr;
  cuda::Stream stream = nullptr;
  cuda::Event event = nullptr;
  int value = 0;
  const auto inject = [](CallKind kind) { InjectError(kind, 0, 999); };
  inject(CallKind::kLaunch);
  EXPECT_ANY_THROW(Start(stream_, FillKernel<int>, 1, 1, number.data(), 1, 5));
  inject(CallKind::kCopy);
  EXPECT_EQ(Cuda().MemcpyAsync(number.data(), &value, 4, cuda::kHostToDevice, stream_), 999);
  inject(CallKind::kCopy);
  EXPECT_EQ(Cuda().MemsetAsync(number.data(), 0, 4, stream_), 999);
  inject(CallKind::kSynchronize);
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 999);
  inject(CallKind::kHostAlloc);
  EXPECT_EQ(Cuda().HostAlloc(&memory, 8, 0), 999);
  inject(CallKind::kCreate);
  EXPECT_EQ(Cuda().StreamCreateWithFlags(&stream, cuda::kStreamNonBlocking), 999);
  inject(CallKind::kCreate);
  EXPECT_EQ(Cuda().EventCreateWithFlags(&event, 0), 999);
  inject(CallKind::kCapture);
  EXPECT_EQ(Cuda().StreamBeginCapture(stream_, cuda::kCaptureThreadLocal), 999);
  inject(CallKind::kOther);
  EXPECT_EQ(Cuda().GetDeviceCount(&value), 999);
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
  EXPECT_THAT(number.Values(), ElementsAre(-1));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ErrorTest, AStickyErrorIsThatOfAllCalls) {
  const OnDevice<int> number(1);
  void* memory = nullptr;
  SetStickyError(700);
  EXPECT_EQ(Cuda().Malloc(&memory, 8), 700);
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 700);
  EXPECT_EQ(Cuda().GetLastError(), 700);
  EXPECT_EQ(Cuda().GetLastError(), 700);
  EXPECT_ANY_THROW(Start(stream_, FillKernel<int>, 1, 1, number.data(), 1, 5));
  Reset();
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
}

TEST_F(ErrorTest, WhatABrokenDeviceHeldIsGivenBack) {
  void *memory = nullptr, *host = nullptr;
  const cuda::Stream stream = NewStream();
  Cuda().Malloc(&memory, 8);
  Cuda().HostAlloc(&host, 8, 0);
  SetStickyError(700);
  EXPECT_EQ(Cuda().Free(memory), 700);
  EXPECT_EQ(Cuda().FreeHost(host), 700);
  EXPECT_EQ(Cuda().StreamDestroy(stream), 700);
  EXPECT_THAT(Leaks(), IsEmpty());
  Reset();
}

TEST_F(ErrorTest, ABreakdownShowsWhenSomethingWaits) {
  const OnDevice<int> number(1);
  InjectBreakdown(CallKind::kLaunch, 1, 700);
  Start(stream_, FillKernel<int>, 1, 1, number.data(), 1, 5);
  Start(stream_, FillKernel<int>, 1, 1, number.data(), 1, 6);
  EXPECT_EQ(Cuda().GetLastError(), 0);
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 700);
  EXPECT_EQ(Cuda().MemsetAsync(number.data(), 0, 4, stream_), 700);
  Reset();
}

TEST_F(ErrorTest, AMachineMayHaveNoDeviceOrNoDriver) {
  int count = -1, version = -1;
  Options none;
  none.devices.clear();
  Reset(none);
  EXPECT_EQ(Cuda().GetDeviceCount(&count), cuda::kErrorNoDevice);
  EXPECT_EQ(count, 0);
  Options no_driver;
  no_driver.driver = 0;
  Reset(no_driver);
  EXPECT_EQ(Cuda().DriverGetVersion(&version), 0);
  EXPECT_EQ(version, 0);
  EXPECT_EQ(Cuda().GetDeviceCount(&count), cuda::kErrorInsufficientDriver);
  EXPECT_STREQ(Cuda().GetErrorName(cuda::kErrorInsufficientDriver), "cudaErrorInsufficientDriver");
  EXPECT_STREQ(Cuda().GetErrorName(12345), "unrecognized error code");
  Reset();
  EXPECT_EQ(Cuda().GetDeviceCount(&count), 0);
  EXPECT_EQ(count, 1);
}

TEST_F(ErrorTest, CountersStartAgain) {
  const OnDevice<int> number(1);
  Start(stream_, FillKernel<int>, 1, 1, number.data(), 1, 5);
  Cuda().StreamSynchronize(stream_);
  EXPECT_EQ(Count().allocations, 1);
  EXPECT_EQ(Count().launches, 1);
  ResetCounters();
  EXPECT_EQ(Count().allocations + Count().launches + Count().synchronizations, 0);
}

}  // namespace
}  // namespace emulated_gpu
