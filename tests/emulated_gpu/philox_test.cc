// Device code draws with cuRAND's function, the host with ours: both give the same words.

#include "trainer/base/random/philox.h"

#include <curand_philox4x32_x.h>

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using trainer::Philox4;
using trainer::PhiloxBlock;

constexpr uint64_t kSeed = 0x123456789abcdef0;
constexpr unsigned kStream = 7, kPass = 0xfedcba98;

__global__ void DrawKernel(unsigned* words) {
  const unsigned block = blockIdx.x * blockDim.x + threadIdx.x;
  const uint4 drawn = curand_Philox4x32_10(
      make_uint4(block, block / 3, kPass, kStream),
      make_uint2(static_cast<unsigned>(kSeed), static_cast<unsigned>(kSeed >> 32)));
  words[4 * block] = drawn.x;
  words[4 * block + 1] = drawn.y;
  words[4 * block + 2] = drawn.z;
  words[4 * block + 3] = drawn.w;
}

class DevicePhiloxTest : public GpuTest {};

TEST_F(DevicePhiloxTest, GivesTheWordsOfTheHost) {
  const OnDevice<unsigned> words(4 * 256);
  Start(stream_, DrawKernel, dim3(4), dim3(64), words.data());
  Cuda().StreamSynchronize(stream_);
  const std::vector<unsigned> drawn = words.Values();
  for (uint64_t block = 0; block < 256; ++block) {
    const Philox4 want = PhiloxBlock({kSeed, kStream}, kPass, (block / 3) << 32 | block);
    for (size_t w = 0; w < 4; ++w) ASSERT_EQ(drawn[4 * block + w], want.x[w]) << block << ' ' << w;
  }
}

}  // namespace
}  // namespace emulated_gpu
