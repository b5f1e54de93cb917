#include <cmath>

#include "emulated_gpu/gpu_testing.h"
#include "trainer/base/error/error.h"

namespace emulated_gpu {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

class KernelTest : public GpuTest {
 protected:
  void Finish() { last_error_ = Cuda().StreamSynchronize(stream_); }
  int last_error_ = 0;
};

__global__ void CoordinatesKernel(int* out) {
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  atomicAdd(out + block * blockDim.x * blockDim.y * blockDim.z + thread,
            static_cast<int>(1 + threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z +
                             1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z));
}

TEST_F(KernelTest, RunsEveryThreadOfEveryBlockOnce) {
  const OnDevice<int> out(2 * 3 * 4 * 5 * 6 * 7);
  Cuda().MemsetAsync(out.data(), 0, out.bytes(), stream_);
  Start(stream_, CoordinatesKernel, dim3(2, 3, 4), dim3(5, 6, 7), out.data());
  Finish();
  size_t i = 0;
  const std::vector<int> found = out.Values();
  for (int b = 0; b < 24; ++b) {
    for (int t = 0; t < 210; ++t) {
      ASSERT_EQ(found[i++], 1 + t % 5 + t / 5 % 6 * 10 + t / 30 * 100 + b % 2 * 1000 +
                                b / 2 % 3 * 10000 + b / 6 * 100000);
    }
  }
  EXPECT_EQ(Count().launches, 1);
  EXPECT_THAT(Problems(), IsEmpty());
}

__global__ void OrderKernel(int* next, int* order, int by_block) {
  order[atomicAdd(next, 1)] = static_cast<int>(by_block ? blockIdx.x : threadIdx.x);
}

TEST_F(KernelTest, TheOrderOfThreadsAndBlocksIsRandomAndDependsOnTheSeedAlone) {
  for (const int by_block : {0, 1}) {
    std::vector<std::vector<int>> orders;
    for (const uint64_t seed : {7, 7, 8}) {
      SetSeed(seed);
      const OnDevice<int> next(1), order(64);
      Cuda().MemsetAsync(next.data(), 0, next.bytes(), stream_);
      Start(stream_, OrderKernel, by_block ? 64 : 1, by_block ? 1 : 64, next.data(), order.data(),
            by_block);
      Finish();
      orders.push_back(order.Values());
    }
    EXPECT_EQ(orders[0], orders[1]);
    EXPECT_NE(orders[0], orders[2]);
  }
}

__global__ void ReverseKernel(int* data, bool wait) {
  __shared__ int shared[128];
  const unsigned t = threadIdx.x;
  shared[t] = data[t];
  if (wait) __syncthreads();
  data[t] = shared[127 - t];
}

TEST_F(KernelTest, ABarrierThatIsMissingGivesWrongNumbers) {
  for (const bool wait : {true, false}) {
    std::vector<int> numbers(128);  // different each time: a block finds what the last one left
    for (int i = 0; i < 128; ++i) numbers[static_cast<size_t>(i)] = 1000 * (1 + wait) + i;
    const OnDevice<int> data(128);
    Cuda().MemcpyAsync(data.data(), numbers.data(), data.bytes(), cuda::kHostToDevice, stream_);
    Start(stream_, ReverseKernel, 1, 128, data.data(), wait);
    Finish();
    const std::vector<int> expected(numbers.rbegin(), numbers.rend());
    EXPECT_EQ(data.Values() == expected, wait);
  }
  EXPECT_THAT(Problems(), IsEmpty());
}

__global__ void TreeSumKernel(const int* in, int* out) {
  __shared__ int part[256];
  part[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  for (unsigned step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

TEST_F(KernelTest, ThreadsWaitForEachOtherManyTimesInManyBlocks) {
  const OnDevice<int> in(256 * 20), out(20);
  Start(stream_, FillKernel<int>, 20, 256, in.data(), 256 * 20, 3);
  Start(stream_, TreeSumKernel, 20, 256, in.data(), out.data());
  Finish();
  EXPECT_THAT(out.Values(), Each(768));
  EXPECT_EQ(last_error_, 0);
}

__global__ void HalfWaitsKernel() {
  if (threadIdx.x < 16) __syncthreads();
}

TEST_F(KernelTest, ABarrierThatSomeThreadsNeverReachIsNamed) {
  Start(stream_, HalfWaitsKernel, dim3(1, 2), 32);
  Finish();
  ASSERT_THAT(Problems(), SizeIs(1));  // once per kernel
  EXPECT_THAT(Problems()[0], AllOf(HasSubstr("block (0, "), HasSubstr("kernel_test.cc:"),
                                   HasSubstr("waits in __syncthreads"), HasSubstr("has ended")));
}

__global__ void TwoBarriersKernel() {
  if (threadIdx.x == 3) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_F(KernelTest, ABarrierInTwoLinesIsAProblem) {
  Start(stream_, TwoBarriersKernel, 1, 32);
  Finish();
  ASSERT_THAT(Problems(), SizeIs(1));
  EXPECT_THAT(Problems()[0], HasSubstr("thread (3, 0, 0) waits in __syncthreads"));
}

__global__ void ForEverKernel(int* out) {
  if (threadIdx.x == 5) {
    __syncthreads();
  } else {
    *out = __shfl_xor_sync(~0u, 1, 1);
  }
}

TEST_F(KernelTest, ThreadsThatWaitForEverAreNamedAndBreakTheDevice) {
  const OnDevice<int> out(1);
  Start(stream_, ForEverKernel, 1, 32, out.data());
  Finish();
  EXPECT_EQ(last_error_, 719);
  ASSERT_THAT(Problems(), SizeIs(1));
  EXPECT_THAT(Problems()[0], AllOf(HasSubstr("waits for ever"),
                                   HasSubstr("thread (5, 0, 0) waits in __syncthreads"),
                                   HasSubstr("waits in __shfl_xor_sync")));
  Reset();
  Start(stream_, FillKernel<int>, 1, 32, out.data(), 1, 9);  // its fibres work again
  Finish();
  EXPECT_THAT(out.Values(), ElementsAre(9));
}

TEST_F(KernelTest, RefusesWhatNoGpuLaunches) {
  const auto launch = [&](dim3 blocks, dim3 threads) {
    EXPECT_THAT([&] { Start(stream_, HalfWaitsKernel, blocks, threads); },
                ThrowsMessage<trainer::Error>(HasSubstr("cudaErrorInvalidConfiguration")));
    EXPECT_EQ(Cuda().GetLastError(), 0);  // the launch cleared it
  };
  launch(0, 32);
  launch(1, 0);
  launch(1, 1025);
  launch(dim3(1, 65536), 1);
  EXPECT_THAT(Problems(), SizeIs(4));
  EXPECT_EQ(Count().launches, 0);
}

TEST_F(KernelTest, AnAddressOfTheHostAsAParameterIsAProblem) {
  int here = 0;
  const PageLocked<int> locked(1);
  Start(stream_, FillKernel<int>, 1, 1, locked.data(), 1, 5);
  Finish();
  EXPECT_EQ(locked[0], 5);
  EXPECT_THAT(Problems(), IsEmpty());
  Start(stream_, FillKernel<int>, 1, 1, &here, 0, 5);
  Finish();
  ASSERT_THAT(Problems(), SizeIs(1));
  EXPECT_THAT(Problems()[0], HasSubstr("gets an address of the host"));
}

}  // namespace
}  // namespace emulated_gpu
