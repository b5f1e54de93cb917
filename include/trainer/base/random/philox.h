#pragma once
// Philox4x32-10, a counter-based generator: the number is a function of (key, counter), so nothing
// needs saving for a resume and every thread or device can compute its own part.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; constants from its
// section 4. cuRAND's Philox generator is the same function: device code calls it, the host has its
// own. The emulated GPU of the tests has a cuRAND header, too, so that its device code draws by the
// same call.

#include <cstdint>

#include "trainer/base/host_device.h"

#ifdef TRAINER_DEVICE_CODE
#include <curand_philox4x32_x.h>
#endif

namespace trainer {

struct Philox4 {
  uint32_t x[4];
};

// A random stream: `seed` is the run's, `stream` names the user of it (a layer, a filler).
struct PhiloxKey {
  uint64_t seed = 0;
  uint32_t stream = 0;
};

#ifdef TRAINER_DEVICE_CODE
// Computes the block on the device: c0 to c3 are the words of the counter, k0 and k1 of the key.
__device__ __forceinline__ Philox4 PhiloxOfCurand(uint32_t c0, uint32_t c1, uint32_t c2,
                                                  uint32_t c3, uint32_t k0, uint32_t k1) {
  const uint4 words = curand_Philox4x32_10(make_uint4(c0, c1, c2, c3), make_uint2(k0, k1));
  return {{words.x, words.y, words.z, words.w}};
}
#endif

// Returns four independent 32-bit words for block `block` of pass `pass`.
HD Philox4 PhiloxBlock(const PhiloxKey& key, uint32_t pass, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = pass, c3 = key.stream;
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
#ifdef __CUDA_ARCH__
  return PhiloxOfCurand(c0, c1, c2, c3, k0, k1);
#else
#ifdef TRAINER_CUDA_EMULATED  // one compilation serves the host and the emulated device
  if (emulated_gpu::in_kernel) return PhiloxOfCurand(c0, c1, c2, c3, k0, k1);
#endif
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
#endif
}

// Returns word `index` of the stream: element i of a tensor takes word i.
HD uint32_t PhiloxWord(const PhiloxKey& key, uint32_t pass, uint64_t index) {
  return PhiloxBlock(key, pass, index / 4).x[index % 4];
}

// Returns a number uniform in [0, 1), a multiple of 2^-24: the upper 24 bits of the word.
HD float UniformFloat(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace trainer
