// Exchanges between the threads of a warp, with values computed by hand.

#include <cmath>

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Queues kernel(out, args...) for one block of `threads` and returns what it wrote, one number per
// thread.
template <class T>
class WarpTestOf : public GpuTest {
 protected:
  template <class... Params, class... Args>
  std::vector<T> Run(unsigned threads, void (*kernel)(T*, Params...), const Args&... args) {
    const OnDevice<T> out(threads);
    Start(stream_, kernel, 1, threads, out.data(), args...);
    EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
    return out.Values();
  }
};
using WarpTest = WarpTestOf<int>;
using WarpFloatTest = WarpTestOf<float>;
using WarpUnsignedTest = WarpTestOf<unsigned>;

__global__ void XorKernel(int* out, int by) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = __shfl_xor_sync(~0u, 100 + t, by);
}
__global__ void DownKernel(int* out, int by, int width) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = __shfl_down_sync(~0u, 100 + t, static_cast<unsigned>(by), width);
}
__global__ void UpKernel(int* out, int by, int width) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = __shfl_up_sync(~0u, 100 + t, static_cast<unsigned>(by), width);
}
__global__ void IndexKernel(int* out, int lane, int width) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = __shfl_sync(~0u, 100 + t, lane, width);
}

TEST_F(WarpTest, ShufflesGiveTheValuesOfOtherLanes) {
  const std::vector<int> by_xor = Run(64, XorKernel, 3), down = Run(64, DownKernel, 5, 32),
                         down8 = Run(64, DownKernel, 5, 8), up = Run(64, UpKernel, 1, 32),
                         up4 = Run(64, UpKernel, 3, 4), index = Run(64, IndexKernel, 7, 32),
                         index8 = Run(64, IndexKernel, 9, 8);
  for (int t = 0; t < 64; ++t) {
    const auto i = static_cast<size_t>(t);
    const int lane = t % 32;
    EXPECT_EQ(by_xor[i], 100 + (t ^ 3));
    EXPECT_EQ(down[i], 100 + (lane + 5 < 32 ? t + 5 : t));
    EXPECT_EQ(down8[i], 100 + (lane % 8 + 5 < 8 ? t + 5 : t));
    EXPECT_EQ(up[i], 100 + (lane >= 1 ? t - 1 : t));
    EXPECT_EQ(up4[i], 100 + (lane % 4 >= 3 ? t - 3 : t));
    EXPECT_EQ(index[i], 100 + t / 32 * 32 + 7);
    EXPECT_EQ(index8[i], 100 + t / 8 * 8 + 1);
  }
  EXPECT_THAT(Problems(), IsEmpty());
}

__global__ void SumKernel(float* out) {
  float sum = static_cast<float>(threadIdx.x);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  out[threadIdx.x] = sum;
}

TEST_F(WarpFloatTest, ASumOverAWarpIsTheSameInEveryLane) {
  const std::vector<float> sums = Run(64, SumKernel);
  for (size_t t = 0; t < 64; ++t) EXPECT_EQ(sums[t], t < 32 ? 496 : 496 + 32 * 32);
}

__global__ void VoteKernel(unsigned* out, int what, unsigned yes) {
  const unsigned t = threadIdx.x;
  const int mine = yes >> t % 32 & 1;
  if (what == 0) out[t] = static_cast<unsigned>(__any_sync(~0u, mine));
  if (what == 1) out[t] = static_cast<unsigned>(__all_sync(~0u, mine));
  if (what == 2) out[t] = __ballot_sync(~0u, mine);
}

TEST_F(WarpUnsignedTest, VotesCountTheLanes) {
  EXPECT_THAT(Run(32, VoteKernel, 0, 0u), Each(0u));
  EXPECT_THAT(Run(32, VoteKernel, 0, 4u), Each(1u));
  EXPECT_THAT(Run(32, VoteKernel, 1, ~4u), Each(0u));
  EXPECT_THAT(Run(64, VoteKernel, 1, ~0u), Each(1u));
  EXPECT_THAT(Run(64, VoteKernel, 2, 0x80000005u), Each(0x80000005u));
  EXPECT_THAT(Run(20, VoteKernel, 2, ~0u), Each(0xfffffu));  // only 20 lanes exist
  EXPECT_THAT(Run(20, VoteKernel, 1, ~0u), Each(1u));
}

__global__ void HalvesKernel(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  const unsigned half = t < 16 ? 0xffffu : 0xffff0000u;
  out[t] = __shfl_xor_sync(half, t, 1);
}

TEST_F(WarpTest, PartsOfAWarpExchangeOnTheirOwn) {
  const std::vector<int> found = Run(32, HalvesKernel);
  for (int t = 0; t < 32; ++t) EXPECT_EQ(found[static_cast<size_t>(t)], t ^ 1);
  EXPECT_THAT(Problems(), IsEmpty());
}

__global__ void AloneKernel(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = __shfl_xor_sync(0xfffeu, t, 2);
}

TEST_F(WarpTest, AThreadOutsideItsOwnMaskIsAProblem) {
  Run(16, AloneKernel);
  ASSERT_FALSE(Problems().empty());
  EXPECT_THAT(Problems()[0], HasSubstr("thread (0, 0, 0) is not in its own mask"));
}

TEST_F(WarpFloatTest, AValueOfALaneThatIsNotThereIsNaNAndAProblem) {
  const std::vector<float> sums = Run(20, SumKernel);
  for (const float sum : sums) EXPECT_TRUE(std::isnan(sum));
  ASSERT_FALSE(Problems().empty());
  EXPECT_THAT(Problems()[0], HasSubstr("which does not take part"));
}

__global__ void EarlyEndKernel(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = -1;
  if (t >= 16) return;
  out[t] = __shfl_down_sync(~0u, t, 4, 16);
}

TEST_F(WarpTest, ThreadsThatEndedAreNotWaitedFor) {
  const std::vector<int> found = Run(32, EarlyEndKernel);
  for (int t = 0; t < 16; ++t) EXPECT_EQ(found[static_cast<size_t>(t)], t < 12 ? t + 4 : t);
  EXPECT_THAT(Problems(), IsEmpty());
}

__global__ void OtherLineKernel(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  if (t % 2 == 0) {
    out[t] = __shfl_xor_sync(~0u, t, 1);
  } else {
    out[t] = __shfl_xor_sync(~0u, t, 1);
  }
}

TEST_F(WarpTest, AShuffleInTwoLinesWaitsForEver) {
  const OnDevice<int> out(32);
  Start(stream_, OtherLineKernel, 1, 32, out.data());
  EXPECT_EQ(Cuda().StreamSynchronize(stream_), 719);
  ASSERT_THAT(Problems(), SizeIs(1));
  EXPECT_THAT(Problems()[0], HasSubstr("waits for ever"));
  Reset();
}

__global__ void AtomicKernel(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  atomicAdd(out, t);
  atomicMin(out + 1, t - 3);
  atomicMax(out + 2, t + 3);
  int old = out[3], before;
  do {
    before = old;
    old = atomicCAS(out + 3, before, before * 2);
  } while (old != before);
  if (t == 0) atomicExch(out + 4, 42);
}

TEST_F(WarpTest, AtomicsChangeOneValueAfterTheOther) {
  const OnDevice<int> out(5);
  Start(stream_, FillKernel<int>, 1, 32, out.data(), 5, 1);
  Start(stream_, AtomicKernel, 1, 10, out.data());
  Cuda().StreamSynchronize(stream_);
  EXPECT_THAT(out.Values(), ElementsAre(46, -3, 12, 1024, 42));
}

__global__ void OtherAtomicsKernel(double* out) {
  atomicAdd(out, 0.5);
  auto* const words = reinterpret_cast<unsigned long long*>(out + 1);
  atomicMin(words, 100ull - threadIdx.x);
  auto* const floats = reinterpret_cast<float*>(out + 2);
  atomicAdd(floats, 0.25f);
  out[3] =
      __popc(0xf0u) + __clz(1) + __ffs(8) + __float_as_int(1.0f) + static_cast<int>(rsqrtf(0.25f));
}

TEST_F(WarpTest, AtomicsHaveTheTypesOfCuda) {
  const OnDevice<double> out(4);
  Cuda().MemsetAsync(out.data(), 0, 8, stream_);
  Cuda().MemsetAsync(out.data() + 2, 0, 8, stream_);
  Start(stream_, OtherAtomicsKernel, 1, 64, out.data());
  Cuda().StreamSynchronize(stream_);
  const std::vector<double> found = out.Values();
  EXPECT_EQ(found[0], 32);
  EXPECT_EQ(SameBits<uint64_t>(found[1]), 37u);
  EXPECT_EQ(__int_as_float(static_cast<int>(SameBits<uint64_t>(found[2]))), 16);
  EXPECT_EQ(found[3], 4 + 31 + 4 + 0x3f800000 + 2);
}

}  // namespace
}  // namespace emulated_gpu
