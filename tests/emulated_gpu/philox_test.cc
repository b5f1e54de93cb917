// PhiloxBlock calls cuRAND's function in device code and has its own loop on the host: both give
// the same words.

#include "trainer/base/random/philox.h"

#include <curand_philox4x32_x.h>

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using trainer::Philox4;
using trainer::PhiloxBlock;

constexpr uint64_t kSeed = 0x123456789abcdef0;
constexpr unsigned kStream = 7, kPass = 0xfedcba98;

constexpr uint64_t BlockOf(uint64_t thread) { return (thread / 3) << 32 | thread; }

// Draws as the kernels of the layers do.
__global__ void DrawKernel(unsigned* words) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const Philox4 drawn = PhiloxBlock({kSeed, kStream}, kPass, BlockOf(thread));
  for (unsigned w = 0; w < 4; ++w) words[4 * thread + w] = drawn.x[w];
}

class DevicePhiloxTest : public GpuTest {};

TEST_F(DevicePhiloxTest, GivesTheWordsOfTheHost) {
  const OnDevice<unsigned> words(4 * 256);
  const uint64_t before = curand_calls;
  Start(stream_, DrawKernel, dim3(4), dim3(64), words.data());
  Cuda().StreamSynchronize(stream_);
  EXPECT_EQ(curand_calls, before + 256);
  const std::vector<unsigned> drawn = words.Values();
  for (uint64_t thread = 0; thread < 256; ++thread) {
    const Philox4 want = PhiloxBlock({kSeed, kStream}, kPass, BlockOf(thread));
    for (size_t w = 0; w < 4; ++w)
      ASSERT_EQ(drawn[4 * thread + w], want.x[w]) << thread << ' ' << w;
  }
  EXPECT_EQ(curand_calls, before + 256) << "the host has its own generator";
}

}  // namespace
}  // namespace emulated_gpu
